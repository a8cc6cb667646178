#include "base/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "twinkle/error.h"

extern char** environ;

namespace twinkle::base {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& program, const char* what, int error) {
    const auto code = error == ENOENT ? ErrorCode::not_found : ErrorCode::failed;
    throw Error(code, {.what = what, .where = program, .why = std::strerror(error), .hint = {}});
}

// Two ends that no other program inherits, numbered above the descriptors that the child assigns.
struct PipeEnds {
    UniqueFd reader, writer;

    explicit PipeEnds(const std::string& program) {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0) {
            fail(program, "cannot make a pipe", errno);
        }
        const UniqueFd low_reader(ends[0]), low_writer(ends[1]);
        reader = UniqueFd(fcntl(ends[0], F_DUPFD_CLOEXEC, 10));
        writer = UniqueFd(fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
        if (!reader || !writer) {
            fail(program, "cannot make a pipe", errno);
        }
    }
};

std::vector<std::string> environment_for(const ProcessSpec& spec) {
    std::vector<std::string> entries;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const auto name = text.substr(0, text.find('='));
        if (!spec.environment.contains(std::string(name)) &&
            !(spec.withheld && spec.withheld(name))) {
            entries.emplace_back(text);
        }
    }
    for (const auto& [name, value] : spec.environment) {
        entries.push_back(name + "=" + value);
    }
    return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (auto& text : texts) {
        result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
}

// The child's plan between fork and exec, where only system calls are allowed.
struct ChildPlan {
    char* const* arguments;
    char* const* environment;
    int input, out, err, side, failure;  // -1: leave as it is
    bool die_with_parent;
    pid_t parent;
};

[[noreturn]] void become(const ChildPlan& plan) {
    const auto put = [](int from, int to) { return from < 0 || dup2(from, to) >= 0; };
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    for (const int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP}) {
        sigaction(number, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    if (plan.die_with_parent) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != plan.parent) {  // it died before the request was made
            _exit(127);
        }
    }
    // Closes descriptors that others left open at exec; the one that reports failure closes itself.
    syscall(SYS_close_range, plan.side < 0 ? 3U : 4U, ~0U, CLOSE_RANGE_CLOEXEC);
    if (put(plan.input, 0) && put(plan.out, 1) && put(plan.err, 2) && put(plan.side, 3)) {
        execvpe(plan.arguments[0], plan.arguments, plan.environment);
    }
    const int error = errno;
    [[maybe_unused]] const auto written = write(plan.failure, &error, sizeof error);
    _exit(127);
}

void set_nonblocking(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// During its lifetime, a write to a pipe without a reader fails instead of ending this process.
class SigpipeBlock {
public:
    SigpipeBlock() {
        sigemptyset(&set_);
        sigaddset(&set_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &set_, &before_);
    }
    ~SigpipeBlock() {
        const timespec now{};
        while (sigtimedwait(&set_, nullptr, &now) > 0) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    SigpipeBlock(const SigpipeBlock&) = delete;
    SigpipeBlock& operator=(const SigpipeBlock&) = delete;

private:
    sigset_t set_{}, before_{};
};

}  // namespace

std::string ExitStatus::describe() const {
    if (signal != 0) {
        return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
    }
    return "exit status " + std::to_string(code);
}

Process::Process(const ProcessSpec& spec) {
    const std::string& program = spec.arguments.at(0);
    PipeEnds input(program), out(program), err(program), side(program), failure(program);
    const UniqueFd discard(open("/dev/null", O_WRONLY | O_CLOEXEC));
    auto argument_texts = spec.arguments;
    auto environment_texts = environment_for(spec);
    const auto arguments = pointers(argument_texts);
    const auto environment = pointers(environment_texts);
    const auto target = [&](ProcessSpec::Output kind, const PipeEnds& pipe) {
        return kind == ProcessSpec::Output::capture   ? pipe.writer.get()
               : kind == ProcessSpec::Output::discard ? discard.get()
                                                      : -1;
    };
    const ChildPlan plan{.arguments = arguments.data(),
                         .environment = environment.data(),
                         .input = input.reader.get(),
                         .out = target(spec.out, out),
                         .err = target(spec.err, err),
                         .side = spec.side_channel ? side.writer.get() : -1,
                         .failure = failure.writer.get(),
                         .die_with_parent = spec.die_with_parent,
                         .parent = getpid()};
    // A signal that reaches the child before exec must not run this process's handlers.
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_ = fork();
    if (pid_ == 0) {
        become(plan);
    }
    const int fork_error = errno;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    if (pid_ < 0) {
        fail(program, "cannot start a program", fork_error);
    }
    failure.writer.reset();
    int error = 0;
    ssize_t got = 0;
    do {
        got = read(failure.reader.get(), &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got == sizeof error) {
        reap(true);
        fail(program, "cannot start a program", error);
    }
    input_ = std::move(input.writer);
    const auto keep = [&](bool wanted, Channel channel, PipeEnds& pipe) {
        if (wanted) {
            set_nonblocking(pipe.reader.get());
            outputs_.push_back({channel, std::move(pipe.reader)});
        }
    };
    keep(spec.out == ProcessSpec::Output::capture, Channel::out, out);
    keep(spec.err == ProcessSpec::Output::capture, Channel::err, err);
    keep(spec.side_channel, Channel::side, side);
    set_nonblocking(input_.get());
}

Process::~Process() {
    if (!status_ && pid_ > 0) {
        kill(SIGKILL);
        reap(true);
    }
}

void Process::kill(int signal) {
    if (!status_ && pid_ > 0) {
        ::kill(pid_, signal);
    }
}

void Process::set_time_limit(std::chrono::milliseconds limit) {
    deadline_ = Clock::now() + limit;
}

bool Process::reap(bool wait) {
    if (status_) {
        return true;
    }
    int raw = 0;
    pid_t got = 0;
    do {
        got = waitpid(pid_, &raw, wait ? 0 : WNOHANG);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {  // someone else has taken its status
        status_ = ExitStatus{.code = 255, .signal = 0};
    } else if (got == pid_) {
        status_ = WIFSIGNALED(raw) ? ExitStatus{.code = 0, .signal = WTERMSIG(raw)}
                                   : ExitStatus{.code = WEXITSTATUS(raw), .signal = 0};
    }
    return status_.has_value();
}

// Writes as much as fits; closes the pipe at the end, or when the program no longer reads.
void Process::feed(std::string_view& input) {
    const SigpipeBlock block;
    while (!input.empty()) {
        const auto written = write(input_.get(), input.data(), input.size());
        if (written >= 0) {
            input.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN || errno == EINTR) {
            return;
        } else {
            break;
        }
    }
    input_.reset();
}

// Reads one block of each pipe, so that a program that never stops writing cannot block us; with
// `all`, the rest after its end, with a limit for the same reason.
void Process::drain(const Sink& sink, bool all) {
    std::array<char, 1 << 16> block;
    for (std::size_t i = 0; i < outputs_.size();) {
        bool open = true;
        for (int rounds = all ? 4096 : 1; rounds > 0; --rounds) {
            const auto got = read(outputs_[i].fd.get(), block.data(), block.size());
            if (got > 0) {
                sink(outputs_[i].channel, {block.data(), static_cast<std::size_t>(got)});
            } else {
                open = got < 0 && (errno == EAGAIN || errno == EINTR);
                break;
            }
        }
        if (open) {
            ++i;
        } else {
            outputs_.erase(outputs_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
}

ExitStatus Process::communicate(std::string_view input, const Sink& sink) {
    const auto deliver = [&](bool all) {
        try {
            drain(sink, all);
        } catch (...) {
            kill(SIGKILL);
            reap(true);
            throw;
        }
    };
    while (!outputs_.empty() || input_ || !reap(false)) {
        std::vector<pollfd> waiting;
        for (const auto& pipe : outputs_) {
            waiting.push_back({.fd = pipe.fd.get(), .events = POLLIN, .revents = 0});
        }
        if (input_) {
            waiting.push_back({.fd = input_.get(), .events = POLLOUT, .revents = 0});
        }
        // The end of its pipes signals the end of a program. The short timeout is for programs
        // whose pipes a grandchild holds open, or that closed them and go on.
        poll(waiting.data(), waiting.size(), waiting.empty() ? 5 : 100);
        if (input_) {
            feed(input);
        }
        deliver(false);
        if (deadline_ && Clock::now() >= *deadline_ && !reap(false)) {
            timed_out_ = true;
            kill(SIGKILL);
            reap(true);
        }
        if (!outputs_.empty() && reap(false)) {
            deliver(true);
            break;
        }
        if (outputs_.empty() && reap(false)) {
            break;
        }
    }
    reap(true);
    return *status_;
}

}  // namespace twinkle::base
