#pragma once
// How a lane gets its factors of weights that are packed in 8 or 4 bits (bits_tiles.h).
//
// A warp takes 32 outputs and a group of 64 or 128 along the depth at a time, in products of 16.
// With g = lane / 4 and t = lane % 4 a lane has of each product four terms of four outputs, and the
// same terms of x. Which outputs and terms these are is up to the weight, so that every load is of
// 16 bytes and a warp's lie side by side:
// - `loads`: of 16 bytes, of a group
// - lane_at: where a lane's begin, from the first of the tile's outputs on; of a tile of 16 outputs
//   alone (not `whole`) it reads some twice
// - load_at: where each is, from there
// - step: from a group to the next, in bytes
// - bytes_of_group: of one output
// - products: of a group
// - depth_at(i, t): where the four terms of product i begin, in the group; those of i + 1 follow
//   if i is even
// - output_at(m, half, g): which of the 32 outputs is in row g + 8 half of tile m
// - pair_of<T>(words, i, m, half, odd): terms 0 and 2, or 1 and 3, of product i, in the dtype that
//   an x of T is multiplied in, plus offset_of<T>()
// - pair_of_bytes<T>(bytes, i): bytes 0 and 2, of a load's, as terms of product i (of weights in
//   blocks)
// - grouped: whether each group has scales of its own, else each output has one

#include "cuda/bits_words.h"
#include "cuda/four.h"

namespace twinkle_pack::cuda {
namespace {

// In blocks of 16 outputs (operators/families.h): 16 bytes are four terms of four outputs.
template <unsigned bytes_of_group_>
struct BlockWeights {
    static constexpr bool grouped = true;
    static constexpr unsigned bytes_of_group = bytes_of_group_, products = 4;
    static constexpr unsigned loads = bytes_of_group / 16, step = 16 * bytes_of_group;

    static __device__ __forceinline__ unsigned depth_at(unsigned i, unsigned t) {
        return i / 2 * 32 + 8 * t + i % 2 * 4;
    }
    static __device__ __forceinline__ uint64_t lane_at(unsigned g, unsigned t, uint32_t row_bytes,
                                                       bool whole) {
        return (whole ? uint64_t{g / 4 * 16} * row_bytes : 0) + depth_at(0, t) * 16 + g % 4 * 16;
    }
    static __device__ __forceinline__ uint32_t load_at(unsigned i, uint32_t, bool) {
        return depth_at(i, 0) * 16;
    }
    static __device__ __forceinline__ unsigned output_at(unsigned m, unsigned half, unsigned g) {
        return 4 * g + 2 * m + half;
    }
};

struct Int8Weights : BlockWeights<64> {
    static constexpr float offset = 0;
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of_bytes(uint32_t bytes, unsigned) {
        return bytes_less_128(bytes, Factor<T>());
    }
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of(const uint4 (&words)[loads], unsigned i,
                                                       unsigned m, unsigned half, unsigned odd) {
        return bytes_less_128(word_of(words[i], 2 * m + half) >> 8 * odd, Factor<T>());
    }
    template <class T>
    static __device__ constexpr uint32_t offset_of() {
        return 0;
    }
};

// The upper halves of bytes are 32 further.
struct Int4Weights : BlockWeights<32> {
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of_bytes(uint32_t bytes, unsigned i) {
        return nibbles_less_8(bytes >> i / 2 * 4, Factor<T>());
    }
    // A difference for each pair of weights costs more than one for each term of x, and sums of
    // float32 have bits enough for it, beside the eight of bfloat16.
    static constexpr float offset = 136;
    template <class T>
    static __device__ constexpr uint32_t offset_of() {
        return std::is_same_v<T, BFloat16> ? 0x43084308u : 0;
    }

    template <class T>
    static __device__ __forceinline__ uint32_t pair_of(const uint4 (&words)[loads], unsigned i,
                                                       unsigned m, unsigned half, unsigned odd) {
        const uint32_t word = word_of(words[i % 2], 2 * m + half) >> (8 * odd + i / 2 * 4);
        if constexpr (offset_of<T>() != 0)
            return nibbles_plus_128(word);
        else
            return nibbles_less_8(word, Factor<T>());
    }
};

// Row by row, as LibTorch has them: 16 bytes are 16 terms of an output. In groups of 128 bytes both
// halves of a cache line are asked for at once: a tenth faster where reading is what takes time.
template <unsigned bytes_of_group_>
struct Fp8Weights {
    static constexpr bool grouped = false;
    static constexpr unsigned bytes_of_group = bytes_of_group_, step = bytes_of_group;
    static constexpr unsigned parts = bytes_of_group / 64;  // of a row
    static constexpr unsigned loads = 4 * parts, products = 4 * parts;

    static __device__ __forceinline__ uint64_t lane_at(unsigned g, unsigned t, uint32_t row_bytes,
                                                       bool) {
        return uint64_t{g} * row_bytes + 16 * t;
    }
    static __device__ __forceinline__ uint32_t load_at(unsigned i, uint32_t row_bytes, bool whole) {
        return (whole ? i / parts : i / parts % 2) * 8 * row_bytes + i % parts * 64;
    }
    static __device__ __forceinline__ unsigned output_at(unsigned m, unsigned half, unsigned g) {
        return 16 * m + 8 * half + g;
    }
    static __device__ __forceinline__ unsigned depth_at(unsigned i, unsigned t) {
        return i / 4 * 64 + 16 * t + i % 4 * 4;
    }
    template <class T>
    static __device__ __forceinline__ uint32_t pair_of(const uint4 (&words)[loads], unsigned i,
                                                       unsigned m, unsigned half, unsigned odd) {
        const uint32_t word = word_of(words[(2 * m + half) * parts + i / 4], i % 4);
        return fp8_of_bytes(odd ? word : word << 8, Factor<T>());
    }
    template <class T>
    static __device__ constexpr uint32_t offset_of() {
        return 0;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
