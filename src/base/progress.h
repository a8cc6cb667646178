#pragma once
// A line, or a few, on a terminal that say what is going on; nothing at all where there is no
// terminal.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
    // Several lines, in the place of those that were drawn last.
    void show(const std::vector<std::string>& lines);
    void clear();  // before anything else is written to the terminal

    bool enabled() const { return enabled_; }

private:
    void draw(const std::vector<std::string>& lines);

    int fd_;
    bool enabled_;
    std::size_t drawn_ = 0;  // lines on the terminal; the cursor is at the end of the last
    std::chrono::steady_clock::time_point last_{};
};

}  // namespace twinkle::base
