#pragma once
// The 16-bit floating point types as they lie in memory.

#include <cstddef>
#include <cstdint>

namespace twinkle_pack {

struct BFloat16 {
    uint16_t bits;
};

struct Float16 {
    uint16_t bits;
};

}  // namespace twinkle_pack
