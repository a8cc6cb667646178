#include "base/progress.h"

#include <unistd.h>

#include "base/terminal.h"
#include "base/text.h"

namespace twinkle::base {

Progress::Progress(int fd, bool enabled) : fd_(fd), enabled_(enabled && is_terminal(fd)) {}

Progress::~Progress() {
    clear();
}

void Progress::show(std::string_view text) {
    if (enabled_) {
        draw(printable(text));
    }
}

void Progress::show(std::string_view text, std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (!enabled_ || (done < total && now - last_ < std::chrono::milliseconds(50))) {
        return;
    }
    last_ = now;
    draw(printable(text) + "  " + std::to_string(done) + "/" + std::to_string(total));
}

void Progress::clear() {
    if (drawn_) {
        drawn_ = false;
        [[maybe_unused]] const auto written = write(fd_, "\r\x1b[K", 4);
    }
}

void Progress::draw(const std::string& line) {
    const auto columns = terminal_columns(fd_);
    const std::string text = "\r\x1b[K" + keep_head(line, columns > 1 ? columns - 1 : 79);
    drawn_ = true;
    [[maybe_unused]] const auto written = write(fd_, text.data(), text.size());
}

}  // namespace twinkle::base
