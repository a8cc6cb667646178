#pragma once
// Splits Python source into tokens. f-strings are split as well (PEP 701): their text and the
// expressions in them become tokens, so that strings may nest to any depth without recursion.

#include "python/token.h"

#include <string>
#include <string_view>
#include <vector>

namespace twinkle::python {

struct TokenList {
    std::vector<Token> tokens;  // ends with EndOfFile or Error
    std::string error;          // the message of the Error token
};

inline constexpr std::size_t kMaxBrackets = 200;     // as in CPython
inline constexpr std::size_t kMaxIndentation = 100;  // as in CPython

// `source` has passed check_source.
TokenList tokenize(std::string_view source);

}  // namespace twinkle::python
