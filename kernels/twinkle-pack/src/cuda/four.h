#pragma once
// Four numbers that are moved at once, and numbers as their bits.

#include "cuda/platform.h"

namespace twinkle_pack::cuda {
namespace {

__device__ __forceinline__ float as_float(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
__device__ __forceinline__ uint32_t as_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

__device__ __forceinline__ uint32_t word_of(const uint4& v, unsigned i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

struct Four {
    uint4 words;

    static __device__ __forceinline__ Four of(float a, float b, float c, float d) {
        return {{as_bits(a), as_bits(b), as_bits(c), as_bits(d)}};
    }
    static __device__ __forceinline__ Four at(const float* from) {
        return {*reinterpret_cast<const uint4*>(from)};
    }
    __device__ __forceinline__ void store(float* to) const {
        *reinterpret_cast<uint4*>(to) = words;
    }
    __device__ __forceinline__ float number(unsigned i) const {
        return as_float(word_of(words, i));
    }
    __device__ __forceinline__ void add(const Four& other) {
        *this = of(number(0) + other.number(0), number(1) + other.number(1),
                   number(2) + other.number(2), number(3) + other.number(3));
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
