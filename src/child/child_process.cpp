#include "child/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>

#include "base/text.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "child/line_reader.h"
#include "twinkle/error.h"

namespace twinkle::child {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t longest_line = 1 << 20;
constexpr int exit_threw = 3;
constexpr long pidfd_open = 434;  // on every processor; the headers may not have it
// The child's last line. Its exit code proves nothing: foreign code may call exit(0).
constexpr std::string_view finished_line = "\x04";
// Prefixes for the message of the exception that ended the work, and for what could not be
// confined.
constexpr std::string_view exception_mark = "\x05";
constexpr std::string_view unconfined_mark = "\x06";

[[noreturn]] void cannot_start() {
    throw Error(ErrorCode::failed, {.what = "no child process can be started",
                                    .where = "",
                                    .why = std::strerror(errno),
                                    .hint = ""});
}

// In the child -------------------------------------------------------------------------------

void send_line(int descriptor, std::string_view line) {
    if (base::write_all(descriptor, std::string(line) + '\n') != 0) {
        ::_exit(exit_threw);  // the parent is gone
    }
}

int result_descriptor = -1;  // for what ends the process without a way back

// The message of the exception in flight, without LibTorch's stack of C++ frames; TorchScript's own
// begins with an empty line.
std::string exception_text() {
    try {
        throw;
    } catch (const std::exception& error) {
        const std::string_view text = error.what();
        const std::size_t begin = std::min(text.find_first_not_of(" \r\n\t"), text.size());
        const std::size_t line = text.find('\n', begin) - begin;
        return std::string(text.substr(begin, std::min<std::size_t>(line, 300)));
    } catch (...) {
        return "of an unknown type";
    }
}

// Reports an exception that leaves a library's initializer and aborts: it cannot be caught, because
// the loader cannot propagate it.
void tell_and_abort() {
    if (std::current_exception()) {
        send_line(result_descriptor, std::string(exception_mark) + exception_text());
    }
    std::abort();
}

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

// Whether it is a checked library in immutable memory (runtime/kernels/verified_files.h).
bool is_sealed(int descriptor) {
    const int seals = ::fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE) != 0;
}

// Closes the parent's descriptors to foreign code. Their numbers stay taken, because the loader
// knows libraries that were opened through /proc/self/fd by them.
void cut_descriptors(const Limits& limits, int result) {
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    std::vector<int> open;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
         !error && entry != end; entry.increment(error)) {
        open.push_back(std::atoi(entry->path().filename().c_str()));
    }
    for (int number = 0; error && number < 1024; ++number) {
        open.push_back(number);
    }
    for (const int one : open) {
        const bool said = one == STDOUT_FILENO || one == STDERR_FILENO;
        const bool kept = one == result || one == null || (said && limits.keeps_output) ||
                          std::find(limits.descriptors.begin(), limits.descriptors.end(), one) !=
                              limits.descriptors.end();
        if (!kept && ::fcntl(one, F_GETFD) >= 0 && !is_sealed(one)) {
            null >= 0 ? ::dup2(null, one) : ::close(one);
        }
    }
}

void restore_signals() {
    for (const int signal :
         {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
        ::signal(signal, SIG_DFL);
    }
}

[[noreturn]] void run_child(const Limits& limits, int result, pid_t parent,
                            const std::function<void(const Send&)>& work) {
    ::setpgid(0, 0);  // so that what it starts can be ended with it
    restore_signals();
    cut_descriptors(limits, result);
    limit_memory(limits.memory);
    result_descriptor = result;
    std::set_terminate(tell_and_abort);
    int code = 0;
    try {
        // Set before the filter, which forbids changing it.
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
            ::_exit(exit_threw);
        }
        for (const std::string& missing : confine(limits.confinement)) {
            send_line(result, std::string(unconfined_mark) + missing);
        }
        work([&](std::string_view line) { send_line(result, line); });
        send_line(result, finished_line);
    } catch (...) {
        send_line(result, std::string(exception_mark) + exception_text());
        code = exit_threw;
    }
    ::_exit(code);  // no destructors: the child shares the parent's state
}

// In the parent ------------------------------------------------------------------------------

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

std::string seconds(milliseconds time) {
    return std::to_string(time.count() / 1000) + " s";
}

// A child that is not yet waited for; its destructor kills it with its process group.
class Child {
public:
    explicit Child(pid_t pid)
        : pid_(pid), handle_(static_cast<int>(::syscall(pidfd_open, pid, 0))) {}
    ~Child() {
        if (pid_ > 0) {
            kill();
            wait();
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // A handle for waiting by poll(); -1 if the system has none.
    int handle() const { return handle_.get(); }
    void kill() const {
        ::kill(pid_, SIGKILL);
        ::kill(-pid_, SIGKILL);
    }
    bool ended() const {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               info.si_pid == pid_;
    }
    int wait() {
        int status = 0;
        while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
        }
        pid_ = -1;
        return status;
    }

private:
    pid_t pid_;
    base::UniqueFd handle_;
};

// Reads until the child has ended; kills it if it breaks a limit.
class Listener {
public:
    Listener(const Limits& limits, const Receive& receive) : limits_(limits), receive_(receive) {}

    // Why it was killed; empty: it ended.
    std::string listen(const Child& child, int descriptor);
    bool finished() const { return finished_; }
    const std::string& exception() const { return exception_; }
    std::vector<std::string>& unconfined() { return unconfined_; }

private:
    void take(std::string_view line);
    std::string read(int descriptor, bool& open);
    milliseconds time_left() const;
    std::string overdue() const;

    const Limits& limits_;
    const Receive& receive_;
    const std::function<void(std::string_view)> take_ = [this](std::string_view line) {
        take(line);
    };
    LineReader reader_{longest_line, limits_.output, take_};
    Clock::time_point start_ = Clock::now();
    Clock::time_point heard_ = start_;
    bool began_ = false;
    bool finished_ = false;
    std::string exception_;
    std::vector<std::string> unconfined_;
};

void Listener::take(std::string_view line) {
    heard_ = Clock::now();
    if (line == finished_line) {
        finished_ = true;
    } else if (line.starts_with(exception_mark)) {
        exception_ = ": " + base::printable(line.substr(exception_mark.size()));
    } else if (line.starts_with(unconfined_mark)) {
        if (!began_ && unconfined_.size() < 8) {  // later it could be anybody's
            unconfined_.push_back(base::printable(line.substr(unconfined_mark.size())));
        }
    } else {
        began_ = true;
        receive_(line);
    }
}

// Why the child must be killed for what it wrote.
std::string Listener::read(int descriptor, bool& open) {
    try {
        switch (reader_.read(descriptor)) {
            case LineReader::State::open: break;
            case LineReader::State::ended: open = false; break;
            case LineReader::State::too_long: return "it wrote a line without an end";
            case LineReader::State::too_much:
                return "it wrote more than " + std::to_string(limits_.output >> 20) + " MiB";
        }
    } catch (const std::exception&) {
        return "it wrote what twinkle does not understand";
    }
    return "";
}

milliseconds Listener::time_left() const {
    auto end = heard_ + limits_.silence;
    if (limits_.total.count() > 0) {
        end = std::min(end, start_ + limits_.total);
    }
    return std::chrono::ceil<milliseconds>(end - Clock::now());
}

std::string Listener::overdue() const {
    const auto now = Clock::now();
    if (now - heard_ >= limits_.silence) {
        return "it hung: nothing came for " + seconds(limits_.silence);
    }
    if (limits_.total.count() > 0 && now - start_ >= limits_.total) {
        return "it hung: it had not ended after " + seconds(limits_.total);
    }
    return "";
}

std::string Listener::listen(const Child& child, int descriptor) {
    bool open = true;
    std::string broke;
    while (broke.empty() && !child.ended()) {
        pollfd waiting[2] = {{child.handle(), POLLIN, 0}, {open ? descriptor : -1, POLLIN, 0}};
        if (std::string late = overdue(); !late.empty()) {
            return late;
        }
        // Without a handle, polls for the end of a child whose pipe another process holds open.
        const milliseconds longest(child.handle() >= 0 && open ? 3600000 : 50);
        ::poll(waiting, 2,
               static_cast<int>(std::clamp(time_left(), milliseconds(0), longest).count()));
        if (open && waiting[1].revents != 0) {
            broke = read(descriptor, open);
        }
    }
    // Reads what it had written. The pipe may have no end of file: another process may hold it
    // open.
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    while (open && broke.empty()) {
        pollfd ready{descriptor, POLLIN, 0};
        if (::poll(&ready, 1, 0) <= 0) {
            break;
        }
        broke = read(descriptor, open);
    }
    return broke;
}

}  // namespace

Outcome run(const Limits& limits, const std::function<void(const Send&)>& work,
            const Receive& receive) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
        cannot_start();
    }
    const base::UniqueFd read_end(ends[0]);
    base::UniqueFd write_end(ends[1]);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid < 0) {
        cannot_start();
    }
    if (pid == 0) {
        run_child(limits, write_end.get(), parent, work);
    }
    write_end.reset();
    Child child(pid);
    Listener listener(limits, receive);
    Outcome outcome;
    outcome.why = listener.listen(child, read_end.get());
    outcome.unconfined = std::move(listener.unconfined());
    child.kill();
    const int status = child.wait();
    if (!outcome.why.empty()) {
        return outcome;
    }
    const std::string& threw = listener.exception();
    if (WIFSIGNALED(status)) {
        outcome.why =
            signal_words(WTERMSIG(status)) + (threw.empty() ? "" : " on an exception" + threw);
    } else if (!listener.finished()) {
        outcome.why = WEXITSTATUS(status) == exit_threw ? "it failed with an exception" + threw
                                                        : "it ended the process with exit code " +
                                                              std::to_string(WEXITSTATUS(status));
    } else {
        outcome.finished = true;
    }
    return outcome;
}

}  // namespace twinkle::child
