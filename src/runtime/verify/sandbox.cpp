#include "runtime/verify/sandbox.h"

#include "base/text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "twinkle/error.h"

#include <ATen/Parallel.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>

namespace twinkle::runtime {

namespace {

constexpr std::size_t max_line = 1 << 20;
constexpr int exit_threw = 3;
// The child's last line. Its exit code says nothing: foreign code may call exit(0).
constexpr std::string_view finished_line = "\x04";
// In front of what an exception said that ended the work.
constexpr std::string_view exception_mark = "\x05";

void limit_memory(std::uint64_t additional) {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const std::uint64_t bytes = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const rlimit limit{bytes + additional, bytes + additional};
    if (additional > 0) {
        ::setrlimit(RLIMIT_AS, &limit);
    }
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
}

void send_line(int descriptor, std::string_view line) {
    if (base::write_all(descriptor, std::string(line) + '\n') != 0) {
        ::_exit(exit_threw);  // the parent is gone
    }
}

int threads_of_children = 0;  // as many as there are

int child_descriptor = -1;  // for what ends the process without a way back

// The message of the exception in flight, without LibTorch's stack of C++ frames.
std::string exception_text() {
    try {
        throw;
    } catch (const std::exception& error) {
        const std::string text = error.what();
        return text.substr(0, std::min<std::size_t>(text.find('\n'), 300));
    } catch (...) {
        return "of an unknown type";
    }
}

// An exception that leaves the initializer of a library cannot be caught: the loader has no way to
// pass it on.
void tell_and_abort() {
    if (std::current_exception()) {
        send_line(child_descriptor, std::string(exception_mark) + exception_text());
    }
    std::abort();
}

[[noreturn]] void run_child(
    const SandboxLimits& limits, int descriptor,
    const std::function<void(const std::function<void(std::string_view)>&)>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGTERM, SIGHUP}) {
        ::signal(signal, SIG_DFL);
    }
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::dup2(null, STDERR_FILENO);
    limit_memory(limits.memory);
    if (threads_of_children > 0) {
        at::set_num_threads(threads_of_children);
    }
    child_descriptor = descriptor;
    std::set_terminate(tell_and_abort);
    int code = 0;
    try {
        work([&](std::string_view line) { send_line(descriptor, line); });
        send_line(descriptor, finished_line);
    } catch (...) {
        send_line(descriptor, std::string(exception_mark) + exception_text());
        code = exit_threw;
    }
    ::_exit(code);  // no destructors: the child shares the parent's state
}

std::string signal_words(int signal) {
    switch (signal) {
        case SIGSEGV: return "it crashed (segmentation fault)";
        case SIGBUS: return "it crashed (bus error)";
        case SIGFPE: return "it crashed (arithmetic error)";
        case SIGILL: return "it crashed (illegal instruction)";
        case SIGABRT: return "it aborted";
        case SIGKILL: return "it was killed, most likely for lack of memory";
        default: return "it was ended by signal " + std::to_string(signal);
    }
}

// Splits what arrives into lines. False at the end of the stream, or on a line beyond the limit.
class LineReader {
public:
    explicit LineReader(const std::function<void(std::string_view)>& receive) : receive_(receive) {}

    bool read(int descriptor) {
        char buffer[65536];
        const ssize_t size = ::read(descriptor, buffer, sizeof buffer);
        if (size < 0) {
            return errno == EINTR;
        }
        if (size == 0) {
            return false;
        }
        pending_.append(buffer, static_cast<std::size_t>(size));
        for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
            receive_(std::string_view(pending_).substr(0, end));
            pending_.erase(0, end + 1);
        }
        return pending_.size() <= max_line;
    }

private:
    const std::function<void(std::string_view)>& receive_;
    std::string pending_;
};

}  // namespace

NumberLeft::NumberLeft(int value) {
    void* memory = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        throw Error(ErrorCode::failed, {.what = "no memory can be shared with a child process",
                                        .where = "",
                                        .why = std::strerror(errno),
                                        .hint = ""});
    }
    place_ = new (memory) std::atomic<int>(value);
}

NumberLeft::~NumberLeft() {
    ::munmap(place_, sizeof(std::atomic<int>));
}

void leave_threads_to_children() {
    if (threads_of_children == 0) {
        threads_of_children = at::get_num_threads();
        at::set_num_threads(1);
    }
}

SandboxLimits SandboxLimits::for_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t seconds_per_gib = 120;
    constexpr std::uint64_t copies = 8;  // the model in several precisions, and its activations
    SandboxLimits limits;
    limits.silence += std::chrono::seconds(seconds_per_gib * (bytes >> 30));
    limits.memory = std::max(limits.memory, copies * bytes);
    if (const char* text = std::getenv("TWINKLE_SANDBOX_SECONDS")) {
        const long seconds = std::strtol(text, nullptr, 10);
        if (seconds > 0 && seconds < 86400) {
            limits.silence = std::chrono::seconds(seconds);
        }
    }
    return limits;
}

SandboxLimits SandboxLimits::for_bytes_on_gpu(std::uint64_t bytes) {
    SandboxLimits limits = for_bytes(bytes);
    limits.memory = 0;
    if (std::getenv("TWINKLE_SANDBOX_SECONDS") == nullptr) {
        limits.silence *= 4;
    }
    return limits;
}

SandboxOutcome run_in_sandbox(
    const SandboxLimits& limits,
    const std::function<void(const std::function<void(std::string_view)>&)>& work,
    const std::function<void(std::string_view)>& receive) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        throw Error(ErrorCode::failed, {.what = "no child process can be started",
                                        .where = "",
                                        .why = std::strerror(errno),
                                        .hint = ""});
    }
    const base::UniqueFd read_end(ends[0]);
    base::UniqueFd write_end(ends[1]);
    const pid_t child = ::fork();
    if (child < 0) {
        throw Error(ErrorCode::failed, {.what = "no child process can be started",
                                        .where = "",
                                        .why = std::strerror(errno),
                                        .hint = ""});
    }
    if (child == 0) {
        run_child(limits, write_end.get(), work);
    }
    write_end.reset();

    bool hung = false;
    bool finished = false;
    std::string threw;
    const std::function<void(std::string_view)> take = [&](std::string_view line) {
        if (line == finished_line) {
            finished = true;
        } else if (line.starts_with(exception_mark)) {
            threw = ": " + base::printable(line.substr(exception_mark.size()));
        } else {
            receive(line);
        }
    };
    LineReader reader(take);
    while (true) {
        pollfd ready{read_end.get(), POLLIN, 0};
        const int count = ::poll(&ready, 1, static_cast<int>(limits.silence.count()));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count == 0) {
            hung = true;
            break;
        }
        if (!reader.read(read_end.get())) {
            break;
        }
    }
    if (hung) {
        ::kill(child, SIGKILL);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (hung) {
        return {false, "it hung: nothing came for " +
                           std::to_string(limits.silence.count() / 1000) + " s"};
    }
    if (WIFSIGNALED(status)) {
        return {false,
                signal_words(WTERMSIG(status)) + (threw.empty() ? "" : " on an exception" + threw)};
    }
    if (!finished) {
        return {false, WEXITSTATUS(status) == exit_threw ? "it failed with an exception" + threw
                                                         : "it ended the process with exit code " +
                                                               std::to_string(WEXITSTATUS(status))};
    }
    return {true, ""};
}

}  // namespace twinkle::runtime
