#pragma once
// Facts on the terminal: whether there is one, its width, whether colours are wanted; and how many
// columns a text takes.

#include <cstddef>
#include <string>
#include <string_view>

namespace twinkle::base {

enum class ColorMode { automatic, always, never };

bool is_terminal(int fd);

// Columns of the terminal. Without one: an exported COLUMNS, else 0, and nothing needs to be cut to
// a width.
std::size_t terminal_columns(int fd);

// automatic: on a terminal that is not "dumb", unless NO_COLOR is set (no-color.org).
bool wants_color(ColorMode mode, int fd);

enum class Style { plain, bold, dim, red, green, yellow, cyan };

// Wraps `text` in escape codes, if colours are on.
std::string styled(std::string_view text, Style style, bool color);

// Columns that UTF-8 text takes (one for each code point; escape codes are not expected here).
std::size_t display_width(std::string_view text);

// Keeps at most `width` columns: an ellipsis replaces the end, or the beginning.
std::string keep_head(std::string_view text, std::size_t width);
std::string keep_tail(std::string_view text, std::size_t width);

// Breaks at spaces, and inside a word that is longer than a line. Every line begins with `indent`
// spaces, which count.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace twinkle::base
