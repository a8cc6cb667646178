#include "base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace twinkle::base {
namespace {

bool continues(char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// The offset of code point number `count`.
std::size_t offset_of(std::string_view text, std::size_t count) {
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        if (!continues(text[at]) && count-- == 0) {
            break;
        }
    }
    return at;
}

const char* escape(Style style) {
    switch (style) {
        case Style::plain: return "";
        case Style::bold: return "\x1b[1m";
        case Style::dim: return "\x1b[2m";
        case Style::red: return "\x1b[1;31m";
        case Style::green: return "\x1b[32m";
        case Style::yellow: return "\x1b[33m";
        case Style::cyan: return "\x1b[36m";
    }
    return "";
}

}  // namespace

bool is_terminal(int fd) {
    return isatty(fd) == 1;
}

std::size_t terminal_columns(int fd) {
    if (!is_terminal(fd)) {
        const char* columns = std::getenv("COLUMNS");
        return columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
    }
    winsize size{};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return 80;
}

bool wants_color(ColorMode mode, int fd) {
    if (mode != ColorMode::automatic) {
        return mode == ColorMode::always;
    }
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return is_terminal(fd) && (no_color == nullptr || *no_color == '\0') &&
           (term == nullptr || std::string_view(term) != "dumb");
}

std::string styled(std::string_view text, Style style, bool color) {
    if (!color || style == Style::plain || text.empty()) {
        return std::string(text);
    }
    return escape(style) + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    for (const char byte : text) {
        width += continues(byte) ? 0 : 1;
    }
    return width;
}

std::string keep_head(std::string_view text, std::size_t width) {
    if (display_width(text) <= width) {
        return std::string(text);
    }
    return width == 0 ? "" : std::string(text.substr(0, offset_of(text, width - 1))) + "…";
}

std::string keep_tail(std::string_view text, std::size_t width) {
    const auto length = display_width(text);
    if (length <= width) {
        return std::string(text);
    }
    return width == 0 ? "" : "…" + std::string(text.substr(offset_of(text, length - width + 1)));
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
    const std::string margin(indent, ' ');
    const std::size_t room = width > indent ? width - indent : 1;
    std::string result = margin;
    std::size_t used = 0;
    while (!text.empty()) {
        auto word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(word.size() + 1, text.size()));
        if (used > 0 && used + 1 + display_width(word) > room) {
            result += "\n" + margin;
            used = 0;
        }
        for (; display_width(word) > room; word.remove_prefix(offset_of(word, room))) {
            result.append(word.substr(0, offset_of(word, room))).append("\n").append(margin);
        }
        if (used > 0 && !word.empty()) {
            result += ' ';
            ++used;
        }
        result += word;
        used += display_width(word);
    }
    return result;
}

}  // namespace twinkle::base
