#pragma once
// Where things stand in the text of a TOML document, for edits that leave the rest as it is. The
// text must be valid TOML: whoever asks has parsed it before.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::project {

inline constexpr std::size_t no_place = static_cast<std::size_t>(-1);

// A part of the text; in lists with the comma behind it, if there is one.
struct TomlSpan {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t comma = no_place;
};

using TomlPath = std::vector<std::string>;
TomlPath joined(TomlPath path, const TomlPath& more);

// "key = value", as a statement or in an inline table.
struct TomlEntry {
    TomlPath key;                     // the parts of a dotted key
    std::vector<TomlSpan> key_parts;  // where they are
    TomlSpan place;                   // from the key to the end of the value
    TomlSpan value;
    bool is_inline_table = false;
    std::vector<TomlEntry> members;  // of an inline table
    bool is_array = false;
    std::vector<TomlSpan> items;  // of an array
};

// "[path]" with what follows it; the first section of a document is its beginning, without header.
struct TomlSection {
    TomlPath path;
    bool is_array = false;  // "[[path]]"
    TomlSpan header;        // with its line's end; empty for the first section
    std::vector<TomlEntry> entries;
};

std::vector<TomlSection> toml_layout(std::string_view text);

// Behind the end of the line that `at` is in.
std::size_t next_line(std::string_view text, std::size_t at);
// The first character of the line that `at` is in.
std::size_t line_begin(std::string_view text, std::size_t at);

}  // namespace twinkle::project
