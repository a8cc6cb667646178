#include "base/progress.h"

#include <unistd.h>

#include "base/terminal.h"
#include "base/text.h"

namespace twinkle::base {
namespace {

// Moves to the first of the lines, and erases everything below.
std::string erase(std::size_t lines) {
    const std::string up = lines > 1 ? "\x1b[" + std::to_string(lines - 1) + "A" : "";
    return lines > 0 ? "\r" + up + "\x1b[J" : "";
}

}  // namespace

Progress::Progress(int fd, bool enabled) : fd_(fd), enabled_(enabled && is_terminal(fd)) {}

Progress::~Progress() {
    clear();
}

void Progress::show(std::string_view text) {
    if (enabled_) {
        draw({printable(text)});
    }
}

void Progress::show(std::string_view text, std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!enabled_ || (done < total && now - last_ < std::chrono::milliseconds(50))) {
        return;
    }
    last_ = now;
    draw({printable(text) + "  " + std::to_string(done) + "/" + std::to_string(total)});
}

void Progress::show(const std::vector<std::string>& lines) {
    if (enabled_) {
        draw(lines);
    }
}

void Progress::clear() {
    if (drawn_ > 0) {
        const std::string text = erase(drawn_);
        drawn_ = 0;
        [[maybe_unused]] const auto written = write(fd_, text.data(), text.size());
    }
}

void Progress::draw(const std::vector<std::string>& lines) {
    const auto columns = terminal_columns(fd_);
    std::string text = erase(drawn_);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text +=
            (i > 0 ? "\n" : "") + keep_head(printable(lines[i]), columns > 1 ? columns - 1 : 79);
    }
    drawn_ = lines.size();
    [[maybe_unused]] const auto written = write(fd_, text.data(), text.size());
}

}  // namespace twinkle::base
