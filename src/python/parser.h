#pragma once
// A parser for the Python that kernels are written in: the grammar of 3.8 to 3.13. Nothing is run.

#include "python/syntax_tree.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <tl/expected.hpp>

namespace twinkle::python {

struct SyntaxError {
    std::string origin;  // as it was passed to parse_module
    std::uint32_t line = 1;
    std::uint32_t column = 1;  // in bytes, from 1
    std::string message;

    std::string where() const;  // "origin:line:column"
};

inline constexpr std::size_t kMaxSourceSize = 4u << 20;

using ParseResult = tl::expected<std::unique_ptr<Module>, SyntaxError>;

// The tree does not refer to `source`. Any bytes may be passed: what is too large, nested too
// deeply, not UTF-8 or not Python is an error with a position. Time and memory are linear.
// Refused although Python reads them: encodings other than UTF-8 (or ASCII), and identifiers that
// NFKC changes. Not found, as in Python's `ast`: what its compiler checks later, such as a return
// outside a function.
ParseResult parse_module(std::string_view source, std::string_view origin);

}  // namespace twinkle::python
