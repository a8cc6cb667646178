#pragma once
// The values of number and string literals.

#include "python/syntax_tree.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::python {

// `text` is a number token that the lexer has checked.
ConstantValue number_value(std::string_view text);

// A string token taken apart: its prefix and what stands between the quotes.
struct StringToken {
    bool raw = false;
    bool bytes = false;
    bool u_prefix = false;
    std::size_t body_offset = 0;
    std::string_view body;
};
StringToken take_apart(std::string_view token);

struct DecodeError {
    std::size_t offset = 0;  // into the body
    std::string message;
};

struct DecodeMode {
    bool raw = false;
    bool bytes = false;
    bool double_braces = false;  // text of an f-string: {{ and }} stand for one brace
};

// Appends the value of `body`, with escapes decoded and line ends made "\n". A \N{…} escape is
// appended as it is written and reported in `has_named_escape`.
std::optional<DecodeError> decode_string(std::string_view body, DecodeMode mode, std::string& out,
                                         bool& has_named_escape);

}  // namespace twinkle::python
