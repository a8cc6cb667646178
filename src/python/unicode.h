#pragma once
// UTF-8 and Python's identifier characters.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace twinkle::python {

// The offset of the first byte that is not part of valid UTF-8, if there is one.
std::optional<std::size_t> invalid_utf8(std::string_view text);

struct CodePoint {
    std::uint32_t value = 0;
    std::size_t size = 1;
};

// The character at `offset` of valid UTF-8.
CodePoint decode_utf8(std::string_view text, std::size_t offset);

// Surrogates are encoded as three bytes, like any other code point of that size.
void append_utf8(std::string& out, std::uint32_t code);

bool is_identifier_start(std::uint32_t code);
bool is_identifier_continue(std::uint32_t code);

// Whether Python's NFKC normalization leaves the character alone wherever it stands in a name.
bool is_normalization_stable(std::uint32_t code);

}  // namespace twinkle::python
