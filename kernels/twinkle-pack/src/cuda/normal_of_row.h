#pragma once
// A row's normalization factors, with one synchronization of its threads that joins the warps'
// sums.

#include "cuda/moments.h"

namespace twinkle_pack::cuda {
namespace {

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

// A row has at most as many parts as its team has warps: each lane takes so many of them.
template <Team team>
constexpr int parts_of_lane = team == Team::cluster ? 2 : 1;
template <Team team>
using GatheredFrom = Gathered<Moments, warp * parts_of_lane<team>>;

// The sums of all parts about one number: each lane of a warp contributes some parts, or zeros.
template <class V, int count>
__device__ __forceinline__ Pair<float> joined_about(float about, const Moments (&parts)[count]) {
    Pair<float> sums{0, 0};
#pragma unroll
    for (const Moments& part : parts) {
        const float shift = part.mean - about, moved = part.count * shift;
        sums += Pair<float>{moved + part.differences,
                            V::fma(shift, moved + 2 * part.differences, part.squares)};
    }
    return sum_in_warp(sums, warp);
}

// The moments of all parts together, the same in all lanes. `first`: a part with the most numbers.
// Sums about its mean lose at most the digits of the number of parts, which half precision does not
// notice.
template <Norm norm, class V, int count>
__device__ __forceinline__ Moments joined(const Moments (&parts)[count], const Moments& first,
                                          const Length<float>& length) {
    if constexpr (norm == Norm::rms) {
        float squares = 0;
#pragma unroll
        for (const Moments& part : parts) squares += part.squares;
        return {length.n, 0, 0, sum_in_warp(squares, warp)};
    } else {
        float about = first.mean;
        // Half precision corrects the mean here; single precision checks below how far it is off.
        if (!V::precise) about += quotient_approximate(first.differences, first.count);
        Pair<float> sums = joined_about<V>(about, parts);
        const float shift = sums.first * length.inverse;
        if (are_far<V>(sums, shift)) {
            about += shift;
            sums = joined_about<V>(about, parts);
        }
        return {length.n, about, sums.first, sums.second};
    }
}

// The same in all threads of the row. All threads of its blocks must call it.
template <Norm norm, class V, Team team, int tensors, Reading reading, class X, int held, int n>
__device__ __forceinline__ Normal<V> normal_of(Pack<X, n> (&x)[held],
                                               const Share<team, tensors, reading>& share,
                                               const RowsOf<float>& all,
                                               GatheredFrom<team>& gathered, float eps) {
    const bool alone = team == Team::any && all.lanes <= warp;
    const unsigned lanes = alone ? all.lanes : warp;
    const float count = alone ? all.length.n : count_of_warp<held, n>(share.seat.lane, all);
    const bool even = (all.vectors & (lanes - 1)) == 0 || count == 0;
    Moments moments = moments_of_warp<norm, V>(x, share, lanes, count, even);
    if (!alone) {
        const unsigned place = threadIdx.x / warp, here = threadIdx.x % warp;
        unsigned warps = blockDim.x / warp;
        if constexpr (team == Team::cluster) {
            const unsigned first = share.seat.rank * warps;
            warps <<= all.block_bits;
            gathered.wait_for_others(warps);
            if (here >> all.block_bits == 0) gathered.send(moments, first + place, here);
            gathered.wait_for_items();
        } else {
            if (here == 0) gathered.items[place] = moments;
            __syncthreads();
        }
        Moments parts[parts_of_lane<team>];
#pragma unroll
        for (unsigned k = 0; k < parts_of_lane<team>; ++k)
            parts[k] = here + k * warp < warps ? gathered.items[here + k * warp] : Moments{};
        moments = joined<norm, V>(parts, gathered.items[0], all.length);
    }
    if constexpr (norm == Norm::rms)
        return Normal<V>::root_mean_square(moments.squares, all.length, eps);
    else
        return Normal<V>::layer(moments.mean, moments.differences, moments.squares, all.length,
                                eps);
}

}  // namespace
}  // namespace twinkle_pack::cuda
