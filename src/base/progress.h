#pragma once
// One line on a terminal that says what is going on; nothing at all where there is no terminal.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace twinkle::base {

class Progress {
public:
    // `enabled`: the caller's wish (not --quiet, not --json); a terminal is needed as well.
    Progress(int fd, bool enabled);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::string_view text);
    // "text  3/12". Drawn at most every 50 ms, and always at the end.
    void show(std::string_view text, std::uint64_t done, std::uint64_t total);
    void clear();  // before anything else is written to the terminal

private:
    void draw(const std::string& line);

    int fd_;
    bool enabled_;
    bool drawn_ = false;
    std::chrono::steady_clock::time_point last_{};
};

}  // namespace twinkle::base
