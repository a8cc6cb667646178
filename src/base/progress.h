#pragma once
// Progress on a terminal, in one or a few lines; shows nothing without a
// terminal.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::base {

class Progress {
public:
    // `enabled`: whether the caller wants it (not --quiet, not --json); it also needs a terminal.
    Progress(int fd, bool enabled);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    void show(std::string_view text);
    // "text  3/12". Drawn at most every 50 ms, and always at the end.
    void show(std::string_view text, std::uint64_t done, std::uint64_t total);
    // Several lines, replacing those drawn last.
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
