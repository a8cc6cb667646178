#pragma once
// Changes of a text, by position. Positions are those of the original text, whatever has changed
// before.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "project/toml_layout.h"

namespace twinkle::project {

class TextChanges {
public:
    // `start`: behind a byte order mark. Lines end with "\r\n" where any of the text does.
    TextChanges(std::string_view text, std::size_t start);

    void replace(const TomlSpan& span, std::string with);
    void insert(std::size_t at, std::string what);
    void erase(std::size_t begin, std::size_t end);

    // A line of its own at the beginning of a line, or behind a last line without an end.
    void insert_line(std::size_t at, const std::string& line, const std::string& indent = "");
    // Inserts behind the line in which the span ends, as far in as that begins.
    void insert_line_behind(const TomlSpan& span, const std::string& line);
    // Appends behind everything, after an empty line.
    void append_section(const std::string& header, const std::string& line);
    // Erases an item of a list with its comma.
    void erase_item(const std::vector<TomlSpan>& items, std::size_t index);
    // Erases the lines that the span is in.
    void erase_lines(const TomlSpan& span);

    // None where changes overlap.
    std::optional<std::string> applied() const;

private:
    struct Change {
        std::size_t begin;
        std::size_t end;
        std::string with;
    };

    const std::string text_;
    const std::size_t start_;
    const std::string newline_;
    std::vector<Change> changes_;
};

}  // namespace twinkle::project
