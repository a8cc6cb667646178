#pragma once
// The sums over a row that a normalization needs, in one meeting of its threads: each warp sums
// about a mean of its own, and these are joined.

#include "cuda/cluster.h"
#include "cuda/teams.h"

namespace twinkle_pack::cuda {
namespace {

enum class Norm { rms, layer };

// Of the numbers x of some lanes: how many, about which mean, and the sums of x - mean and of its
// square. `differences` is what the mean lacks: for half precision, of what was joined alone.
struct alignas(16) Moments {
    float count, mean, differences, squares;
};

// Half precision is held as it is between passes, not as the numbers that it becomes.
template <class X, int held, int n>
__device__ __forceinline__ void keep_packed(Pack<X, n> (&x)[held]) {
    if constexpr (sizeof(X) == 2) {
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n / 2; ++i) forget(reinterpret_cast<uint32_t*>(&x[j])[i]);
    }
}

// How many numbers of the row the lanes of this warp hold.
template <int held, int n>
__device__ __forceinline__ float count_of_warp(unsigned lane, const RowsOf<float>& all) {
    unsigned vectors = 0;
#pragma unroll
    for (int j = 0; j < held; ++j) {
        const unsigned first = lane - threadIdx.x % warp + static_cast<unsigned>(j) * all.lanes;
        const unsigned left = first < all.vectors ? all.vectors - first : 0;
        vectors += left < warp ? left : warp;
    }
    return static_cast<float>(vectors * n);
}

// A sum as several chains of additions, which go on beside each other.
struct Chains {
    float of[4] = {};

    __device__ __forceinline__ float total() const { return (of[0] + of[1]) + (of[2] + of[3]); }
};

// Of a warp's part of one row. Vectors that are not the row's hold zeros.
template <Norm norm, class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_of_warp(Pack<X, n> (&x)[held], const Mine& share,
                                                   unsigned lanes, float count, float inverse) {
    Moments found{count, 0, 0, 0};
    if constexpr (norm == Norm::layer) {
        Chains sum;
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n; ++i) sum.of[i % 4] += to_number(x[j].at[i]);
        keep_packed(x);
        const float total = sum_in_warp(sum.total(), lanes);
        found.mean = total * inverse;
        // Else `differences` tells. A row of equal numbers has no variance.
        if constexpr (!V::precise)
            found.mean = V::fma(V::fma(-found.mean, count, total), inverse, found.mean);
    }
    Chains differences, squares;
#pragma unroll
    for (int j = 0; j < held; ++j) {
        if (norm == Norm::layer && !share.is_mine(j)) continue;
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const float difference = to_number(x[j].at[i]) - found.mean;
            if constexpr (norm == Norm::layer && V::precise) differences.of[i % 4] += difference;
            squares.of[i % 4] = V::fma(difference, difference, squares.of[i % 4]);
        }
    }
    if constexpr (norm == Norm::layer && V::precise) {
        const Pair<float> sums =
            sum_in_warp(Pair<float>{differences.total(), squares.total()}, lanes);
        found.differences = sums.first;
        found.squares = sums.second;
    } else {
        found.squares = sum_in_warp(squares.total(), lanes);
    }
    return found;
}

// Of all parts together, the same in all lanes of a warp: each brings one part, or none (zeros).
// `about`: the mean of the first part, than which none has more numbers. Sums about it lose what
// the parts' number has of digits at most, which half precision does not see; else they are summed
// about the mean of all, once that is known.
template <Norm norm, class V>
__device__ __forceinline__ Moments joined(const Moments& part, float about,
                                          const Length<float>& length) {
    Moments all{length.n, 0, 0, 0};
    if constexpr (norm == Norm::rms) {
        all.squares = sum_in_warp(part.squares, warp);
        return all;
    }
    if constexpr (V::precise) about = sum_in_warp(part.count * part.mean, warp) * length.inverse;
    const float shift = part.mean - about, moved = part.count * shift;
    const Pair<float> sums =
        sum_in_warp(Pair<float>{moved + part.differences,
                                V::fma(shift, moved + 2 * part.differences, part.squares)},
                    warp);
    all.mean = about;
    all.differences = sums.first;
    all.squares = sums.second;
    return all;
}

// The same in all threads of the row. All threads of its blocks take part.
template <Norm norm, class V, Team team, int tensors, class X, int held, int n>
__device__ __forceinline__ Normal<V> normal_of(Pack<X, n> (&x)[held],
                                               const Share<team, tensors>& share,
                                               const RowsOf<float>& all,
                                               Gathered<Moments, warp>& gathered, float eps) {
    const bool alone = team == Team::any && all.lanes <= warp;
    const unsigned lanes = team == Team::any ? all.lanes : warp;
    float count = all.length.n, inverse = all.length.inverse;
    if (norm == Norm::layer && !alone) {
        count = count_of_warp<held, n>(share.seat.lane, all);
        inverse = count > 0 ? quotient_approximate(1, count) : 0;
    }
    Moments moments = moments_of_warp<norm, V>(x, share, lanes, count, inverse);
    if (!alone) {
        const unsigned place = threadIdx.x / warp, here = threadIdx.x % warp;
        unsigned warps = blockDim.x / warp;
        if constexpr (team == Team::cluster) {
            gathered.wait_for_others();
            if (here >> all.block_bits == 0)
                gathered.send(moments, share.seat.rank * warps + place, here);
            gathered.wait_for_items();
            warps <<= all.block_bits;
        } else {
            if (here == 0) gathered.items[place] = moments;
            __syncthreads();
        }
        const Moments part = here < warps ? gathered.items[here] : Moments{};
        moments = joined<norm, V>(part, gathered.items[0].mean, all.length);
    }
    if constexpr (norm == Norm::rms)
        return Normal<V>::root_mean_square(moments.squares, all.length, eps);
    else
        return Normal<V>::layer(moments.mean, moments.differences, moments.squares, all.length,
                                eps);
}

}  // namespace
}  // namespace twinkle_pack::cuda
