#pragma once
// How a lane gets its factors of weights that are packed in 8 or 4 bits (bits_tiles.h).
//
// A warp takes 32 outputs and a group of 64 along the depth at a time, in four products of 16. With
// g = lane / 4 and t = lane % 4 a lane has of each product four terms of four outputs, and the same
// terms of x. Which outputs and terms these are is up to the weight, so that every load is of 16
// bytes and a warp's lie side by side:
//   `loads`: of 16 bytes, of a group; load_at: where each is; first_output_of: of which outputs;
//   bytes_of_group: of one output
//   depth_at(i, t): where the four terms of product i begin, of the group's 64; those of i + 1, if
//   i is even, follow output_at(m, half, g): which of the 32 outputs are in row g + 8 half of tile
//   m pair_of<T>(words, i, m, half, odd): terms 0 and 2, or 1 and 3, of product i grouped: whether
//   each group has scales of its own, else each output has one

#include "cuda/bits_words.h"

namespace twinkle_pack::cuda {
namespace {

__device__ __forceinline__ uint32_t word_of(const uint4& v, unsigned i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// In blocks of 16 outputs (operators/families.h): 16 bytes are four terms of four outputs.
template <unsigned bytes_of_group_>
struct BlockWeights {
    static constexpr bool grouped = true;
    static constexpr unsigned bytes_of_group = bytes_of_group_;
    static constexpr unsigned loads = bytes_of_group / 16;

    static __device__ __forceinline__ unsigned depth_at(unsigned i, unsigned t) {
        return i / 2 * 32 + 8 * t + i % 2 * 4;
    }
    // From the values of the first of the 32 outputs, whose block and the next one are read.
    // `row_bytes`: of an output.
    static __device__ __forceinline__ uint64_t load_at(unsigned i, unsigned g, unsigned t,
                                                       uint32_t group, uint32_t row_bytes) {
        return uint64_t{16} * row_bytes * (g / 4) + 16 * bytes_of_group * group +
               depth_at(i, t) * 16 + g % 4 * 16;
    }
    static __device__ __forceinline__ unsigned first_output_of(unsigned, unsigned g) {
        return g / 4 * 16;
    }
    static __device__ __forceinline__ unsigned output_at(unsigned m, unsigned half, unsigned g) {
        return 4 * g + 2 * m + half;
    }
};

struct Int8Weights : BlockWeights<64> {
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of(const uint4 (&words)[loads], unsigned i,
                                                       unsigned m, unsigned half, unsigned odd) {
        return bytes_less_128(word_of(words[i], 2 * m + half) >> 8 * odd, T());
    }
};

// The upper halves of bytes are 32 further.
struct Int4Weights : BlockWeights<32> {
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of(const uint4 (&words)[loads], unsigned i,
                                                       unsigned m, unsigned half, unsigned odd) {
        return nibbles_less_8(word_of(words[i % 2], 2 * m + half) >> (8 * odd + i / 2 * 4), T());
    }
};

// Row by row, as LibTorch has them: 16 bytes are 16 terms of an output.
struct Fp8Weights {
    static constexpr bool grouped = false;
    static constexpr unsigned bytes_of_group = 64, loads = 4;

    static __device__ __forceinline__ uint64_t load_at(unsigned i, unsigned g, unsigned t,
                                                       uint32_t group, uint32_t row_bytes) {
        return uint64_t{8 * i + g} * row_bytes + group * bytes_of_group + 16 * t;
    }
    static __device__ __forceinline__ unsigned first_output_of(unsigned i, unsigned g) {
        return 8 * i + g;
    }
    static __device__ __forceinline__ unsigned output_at(unsigned m, unsigned half, unsigned g) {
        return 16 * m + 8 * half + g;
    }
    static __device__ __forceinline__ unsigned depth_at(unsigned i, unsigned t) {
        return 16 * t + 4 * i;
    }
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of(const uint4 (&words)[loads], unsigned i,
                                                       unsigned m, unsigned half, unsigned odd) {
        const uint32_t word = word_of(words[2 * m + half], i);
        return fp8_of_bytes(odd ? word : word << 8, T());
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
