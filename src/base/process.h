#pragma once
// Runs another program: its arguments, its pipes, its end. Nothing goes through a shell, no file
// descriptor leaks into the program, and a program that cannot be started is an Error, not an exit
// status.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace twinkle::base {

// The end of a program: by itself with a code, or by a signal.
struct ExitStatus {
    int code = 0;
    int signal = 0;  // 0: it ended by itself

    bool ok() const { return code == 0 && signal == 0; }
    std::string describe() const;  // "exit status 3", "signal 11 (Segmentation fault)"
};

enum class Channel { out, err, side };

struct ProcessSpec {
    enum class Output { inherit, discard, capture };

    std::vector<std::string> arguments;              // the first is the program: a path, or on PATH
    std::map<std::string, std::string> environment;  // set on top of the current one
    // Whether to withhold a variable of the current environment from the program; empty: it gets
    // all.
    std::function<bool(std::string_view variable)> withheld{};
    Output out = Output::capture;
    Output err = Output::capture;
    bool side_channel = false;     // a pipe from the program's file descriptor 3
    bool die_with_parent = false;  // killed by the system when this process ends
};

class Process {
public:
    using Sink = std::function<void(Channel, std::string_view)>;

    explicit Process(const ProcessSpec& spec);
    ~Process();  // kills and reaps what still runs
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    int pid() const { return pid_; }
    void kill(int signal);
    // Starts now; when it is over, the program is killed. May be called from a sink.
    void set_time_limit(std::chrono::milliseconds limit);
    bool timed_out() const { return timed_out_; }

    // Feeds `input`, passes on the program's output, and returns when it has ended, even if a
    // grandchild holds a pipe open. Exceptions of `sink` pass through after the program is killed.
    ExitStatus communicate(std::string_view input, const Sink& sink);

private:
    struct Pipe {
        Channel channel;
        UniqueFd fd;
    };

    void feed(std::string_view& input);
    void drain(const Sink& sink, bool all);
    bool reap(bool wait);

    int pid_ = -1;
    UniqueFd input_;
    std::vector<Pipe> outputs_;
    std::optional<ExitStatus> status_;
    std::optional<std::chrono::steady_clock::time_point> deadline_;
    bool timed_out_ = false;
};

}  // namespace twinkle::base
