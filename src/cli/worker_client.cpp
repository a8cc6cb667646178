#include "cli/worker_client.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>

#include "base/process.h"
#include "cli/interrupt.h"
#include "cli/worker_conversation.h"

namespace twinkle::cli {
namespace {

using base::ProcessSpec;

// Puts LibTorch's folder first, so that the worker gets the LibTorch that it was built for.
std::string library_path(const std::filesystem::path& torch_lib) {
    const char* before = std::getenv("LD_LIBRARY_PATH");
    const bool more = before != nullptr && *before != '\0';
    return torch_lib.string() + (more ? ":" + std::string(before) : "");
}

// Whether a variable may hold a secret, by its name. Kernels are foreign code, which can send away
// whatever it can read.
bool is_secret(std::string_view variable) {
    std::string name(variable);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    constexpr std::string_view words[] = {"TOKEN",  "SECRET", "PASS",       "_PWD",
                                          "AUTH",   "KEY",    "CREDENTIAL", "JWT",
                                          "COOKIE", "DSN",    "_PROXY",     "SESSION_ID"};
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

ProcessSpec specification(const WorkerProgram& worker, const Console& console) {
    ProcessSpec spec;
    spec.arguments = {worker.program.string()};
    if (!worker.torch_lib.empty()) {
        spec.environment["LD_LIBRARY_PATH"] = library_path(worker.torch_lib);
    }
    spec.withheld = is_secret;
    spec.out = console.globals().verbosity >= 2 ? ProcessSpec::Output::capture
                                                : ProcessSpec::Output::discard;
    spec.side_channel = true;
    spec.die_with_parent = true;
    return spec;
}

}  // namespace

base::Json run_worker(const WorkerProgram& worker, const protocol::Request& request,
                      Console& console) {
    base::Process process(specification(worker, console));
    const InterruptTarget target(process.pid());
    WorkerConversation conversation(console);
    const auto status = process.communicate(
        base::dump_json(request.to_json()), [&](base::Channel channel, std::string_view bytes) {
            conversation.receive(channel, bytes);
            if (conversation.finished()) {  // all that is left to do is to end
                process.set_time_limit(std::chrono::seconds(10));
            }
        });
    console.progress().clear();
    if (interrupted() && !conversation.finished()) {
        throw Error(ErrorCode::interrupted,
                    {.what = "interrupted", .where = {}, .why = {}, .hint = {}});
    }
    return conversation.conclude(status);
}

}  // namespace twinkle::cli
