#pragma once
// Numbers in the bytes of a file, which may be truncated.

#include <cstddef>
#include <cstring>
#include <string_view>

namespace twinkle::archive {

// The number that begins at byte `at`, least significant byte first; 0 where bytes are missing.
template <typename Number>
Number little_endian(std::string_view bytes, std::size_t at) {
    Number value = 0;
    if (at <= bytes.size() && sizeof value <= bytes.size() - at) {
        std::memcpy(&value, bytes.data() + at, sizeof value);
    }
    return value;
}

}  // namespace twinkle::archive
