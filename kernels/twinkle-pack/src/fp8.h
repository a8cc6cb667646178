#pragma once
// Numbers of 8 bits with 4 of exponent and 3 of mantissa, without infinity: LibTorch's
// float8_e4m3fn, OCP's E4M3 (OCP 8-bit Floating Point Specification, revision 1.0).

#include <cstdint>

#include "half.h"

namespace twinkle_pack {

constexpr float fp8_largest = 448;

// The exponent's bias is 7 instead of 127; multiplying makes denormals normal, too.
PACK_ANYWHERE inline float fp8_to_float(uint8_t bits) {
    const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fu) << 20;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
    if (magnitude == 0x7f00000u) return __builtin_bit_cast(float, sign | 0x7fc00000u);
    return __builtin_bit_cast(float, magnitude | sign) * 0x1p120f;
}

// To the nearest one, of two the even one; what is larger than 448 becomes 448.
PACK_ANYWHERE inline uint8_t fp8_from_float(float value) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, value);
    const auto sign = static_cast<uint8_t>(bits >> 24 & 0x80u);
    const uint32_t rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) return sign | 0x7f;
    if (rest >= 0x43e00000u) return sign | 0x7e;  // from 448
    if (rest < 0x3c800000u) {                     // below 2^-6: adding 2^14 rounds at the right bit
        const float shifted = __builtin_bit_cast(float, rest) + 0x1p14f;
        return sign | static_cast<uint8_t>(__builtin_bit_cast(uint32_t, shifted) - 0x46800000u);
    }
    const uint32_t rounded = rest + 0x7ffffu + (rest >> 20 & 1u);
    return sign | static_cast<uint8_t>((rounded - 0x3c000000u) >> 20);
}

// Two at once, the first in the lower byte. GPUs have an instruction for it, whose NaN is positive.
PACK_ANYWHERE inline uint16_t fp8_from_floats(float first, float second) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint16_t both;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(both) : "f"(second), "f"(first));
    return both;
#else
    return static_cast<uint16_t>(fp8_from_float(second) << 8 | fp8_from_float(first));
#endif
}

}  // namespace twinkle_pack
