// The LibTorch program behind `twinkle`: one JSON request on standard input, JSON lines on
// descriptor 3.

#include "base/temporary_files.h"
#include "child/confinement.h"
#include "runtime/replay/replay_settings.h"
#include "runtime/tuning/server_record.h"
#include "target/machine.h"
#include "twinkle/error.h"
#include "worker/commands.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <iostream>
#include <iterator>
#include <map>
#include <new>

namespace {

constexpr int channel_descriptor = 3;

twinkle::base::Json execute(const twinkle::protocol::Request& request,
                            const twinkle::worker::Channel& channel) {
    using namespace twinkle::worker;
    static const std::map<std::string, twinkle::base::Json (*)(const Request&, const Channel&)>
        commands = {
            {"kernelize", kernelize_command},
            {"convert", convert_command},
            {"run", run_command},
            {"inspect", inspect_command},
            {"inspect-kernel", inspect_kernel_command},
            {"check", check_command},
            {"bench", bench_command},
            {"compile-kernel", compile_kernel_command},
            {"kernel-operators", kernel_operators_command},
            {"tune-operations", tune_operations_command},
        };
    if (const auto command = commands.find(request.command); command != commands.end()) {
        return command->second(request, channel);
    }
    throw twinkle::Error(twinkle::ErrorCode::malformed,
                         {.what = "the worker has no command " + request.command,
                          .where = "",
                          .why = "",
                          .hint = "install twinkle and its runtime in one version"});
}

}  // namespace

int main() {
    twinkle::child::hide_from_other_processes();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    twinkle::base::remove_temporaries_at_signals();
    if (::isatty(STDIN_FILENO) == 1) {
        std::cerr << "twinkle-worker is started by twinkle and reads its request from a pipe\n";
        return 2;
    }
    twinkle::target::probe_driver_in_child();  // sandboxes use the GPU
    twinkle::runtime::leave_graphs_off();      // runs are compared and measured here
    twinkle::runtime::leave_records_off();     // … and are no server's
    const twinkle::worker::Channel channel(channel_descriptor);
    try {
        const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
        channel.result(execute(twinkle::protocol::Request::parse(text), channel));
        std::cout.flush();
        ::_exit(0);  // LibTorch's teardown costs time and has nothing to save
    } catch (const twinkle::Error& error) {
        channel.error(error);
        return error.exit_code();
    } catch (const std::bad_alloc&) {
        channel.error({twinkle::ErrorCode::failed,
                       {.what = "out of memory", .where = "", .why = "", .hint = ""}});
    } catch (const std::exception& error) {
        channel.error({twinkle::ErrorCode::failed,
                       {.what = "the worker failed unexpectedly",
                        .where = "",
                        .why = std::string(error.what()).substr(0, 300),
                        .hint = "please report this with the model's and the kernel's name"}});
    }
    return 1;
}
