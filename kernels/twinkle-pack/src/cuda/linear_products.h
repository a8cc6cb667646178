#pragma once
// The products of a warp's tiles, for each dtype.

#include "cuda/four.h"
#include "cuda/mma.h"
#include "cuda/scalar.h"

namespace twinkle_pack::cuda {
namespace {

__device__ __forceinline__ uint4 read_shared(const char* from) {
    return *reinterpret_cast<const uint4*>(from);
}

// float32 as the sum of two numbers of TF32, which hold 22 of its 24 bits. Infinities and what is
// next to them become NaN: see store_result.
struct Split {
    uint4 high, low;

    Split() = default;
    __device__ __forceinline__ explicit Split(const uint4& v)
        : high{upper(v.x), upper(v.y), upper(v.z), upper(v.w)},
          low{rest(v.x, high.x), rest(v.y, high.y), rest(v.z, high.z), rest(v.w, high.w)} {}

private:
    // Rounded to 11 bits; the products read 11 bits of the rest, which is rounded so, too.
    static __device__ __forceinline__ uint32_t upper(uint32_t bits) {
        return (bits + 0x1000u) & 0xffffe000u;
    }
    static __device__ __forceinline__ uint32_t rest(uint32_t bits, uint32_t high) {
        return as_bits(as_float(bits) - as_float(high)) + 0x1000u;
    }
};

// tile += A * B in float32: the products of TF32 in three steps, the small ones first. The tensor
// cores cut their sums off instead of rounding them, so they add few terms.
__device__ __forceinline__ void multiply_split(Tile& tile, const Split& a, const Split& below,
                                               const Split& b) {
    Tile sum = {};
    multiply<float>(sum, a.low, below.low, b.high);
    multiply<float>(sum, a.high, below.high, b.low);
    multiply<float>(sum, a.high, below.high, b.high);
#pragma unroll
    for (int i = 0; i < 4; ++i) tile.at[i] += sum.at[i];
}

// tiles += 64 bytes of each row of `weight` and of `x`, of which these are the lane's; `step` is
// the distance to the next 8 rows.
template <class T, int step, unsigned down, unsigned across>
__device__ __forceinline__ void multiply_unit(Tile (&tiles)[down][across], const char* weight,
                                              const char* x) {
    if constexpr (std::is_same_v<T, float>) {
        Split a[2 * down];
#pragma unroll
        for (unsigned i = 0; i < 2 * down; ++i) a[i] = Split(read_shared(weight + i * step));
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            const Split b(read_shared(x + j * step));
#pragma unroll
            for (unsigned m = 0; m < down; ++m)
                multiply_split(tiles[m][j], a[2 * m], a[2 * m + 1], b);
        }
    } else {
        uint4 b[across];
#pragma unroll
        for (unsigned j = 0; j < across; ++j) b[j] = read_shared(x + j * step);
#pragma unroll
        for (unsigned m = 0; m < down; ++m) {
            const uint4 a = read_shared(weight + 2 * m * step);
            const uint4 below = read_shared(weight + (2 * m + 1) * step);
#pragma unroll
            for (unsigned j = 0; j < across; ++j) multiply<T>(tiles[m][j], a, below, b[j]);
        }
    }
}

// One result, in float32, term by term.
__device__ __forceinline__ float plain_product(const char* x, const char* weight,
                                               uint64_t inner_bytes, uint64_t output,
                                               uint64_t token) {
    const float* const a = reinterpret_cast<const float*>(weight + output * inner_bytes);
    const float* const b = reinterpret_cast<const float*>(x + token * inner_bytes);
    float sum = 0;
    for (uint64_t i = 0; i < inner_bytes / 4; ++i) sum = fmaf(a[i], b[i], sum);
    return sum;
}

}  // namespace
}  // namespace twinkle_pack::cuda
