#pragma once
// Weights in the order in which four warps multiply (wgmma.h): of product i a lane has the terms
// 16 i + 2t, + 1, + 8 and + 9, where a load brings four terms that follow one another. So lanes
// 2n and 2n + 1 read every other four of the same ones, and exchange halves of them.

#include "cuda/bits_strip.h"
#include "cuda/bits_weights.h"

namespace twinkle_pack::cuda {
namespace {

// A lane's part of a group, as it is read.
template <class W>
struct StripPart {
    uint4 words[W::loads];
    uint4 scales;  // of its four outputs
};

// Where load 0 begins, of a tile; the others follow after 256 bytes.
template <class W>
__device__ __forceinline__ uint64_t strip_lane_at(uint32_t row_bytes, bool whole) {
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    return (whole ? uint64_t{g / 4 * block_outputs} * row_bytes : 0) + (t % 2 * 2 + t / 2) * 64 +
           g % 4 * 16;
}
constexpr unsigned strip_load_step = 256;

template <class W>
class StripPairs {
public:
    __device__ __forceinline__ StripPairs() {
        const bool odd = threadIdx.x % 2 != 0;
        kept_ = odd ? 0x7632 : 0x5410;
        given_ = odd ? 0x5410 : 0x7632;
        // Bytes where 0 and 2 are; the others do not matter.
        for (unsigned second = 0; second < 2; ++second)
            choice_[second] = (second != 0) == odd ? 0x0100 : 0x0504;
    }

    // By all lanes.
    __device__ __forceinline__ void exchange(StripPart<W>& part) const {
#pragma unroll
        for (uint4& four : part.words) {
            const uint32_t first = shuffle_xor(chosen_bytes(four.x, four.y, given_), 1);
            const uint32_t second = shuffle_xor(chosen_bytes(four.z, four.w, given_), 1);
            four = {chosen_bytes(four.x, four.y, kept_), first, chosen_bytes(four.z, four.w, kept_),
                    second};
        }
    }

    // Of 16 outputs, the factors of a group's products.
    template <class T>
    __device__ __forceinline__ void unpack(uint32_t (&factors)[4][4], const StripPart<W>& part,
                                           unsigned m) const {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            const uint4& four = part.words[i % W::loads];
            const uint32_t kept = m == 0 ? four.x : four.z, given = m == 0 ? four.y : four.w;
#pragma unroll
            for (unsigned k = 0; k < 4; ++k)
                factors[i][k] = W::template pair_of_bytes<T>(
                    chosen_bytes(kept, given, choice_[k / 2] + k % 2 * 0x0202), i);
        }
    }

private:
    uint32_t kept_, given_, choice_[2];
};

}  // namespace
}  // namespace twinkle_pack::cuda
