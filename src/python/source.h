#pragma once
// What must hold for the bytes of a source before it is split into tokens.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::python {

struct SourceProblem {
    std::size_t offset = 0;
    std::string message;
};

// Size, NUL bytes, UTF-8, and the encoding declared in the first two lines.
std::optional<SourceProblem> check_source(std::string_view source);

std::size_t byte_order_mark_size(std::string_view source);

// Bytes of the line end at `offset`: 2 for CR LF, 1 for LF or CR, else 0.
inline std::size_t line_end_size(std::string_view source, std::size_t offset) {
    if (offset >= source.size()) return 0;
    if (source[offset] == '\n') return 1;
    if (source[offset] != '\r') return 0;
    return offset + 1 < source.size() && source[offset + 1] == '\n' ? 2 : 1;
}

}  // namespace twinkle::python
