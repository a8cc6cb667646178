#pragma once
// The sums over a row that a normalization needs, in one meeting of its threads: each warp sums
// about the mean of a few of its own numbers, and these sums are joined.

#include "cuda/cluster.h"
#include "cuda/teams.h"

namespace twinkle_pack::cuda {
namespace {

// Of the numbers x of some lanes: how many, about which mean, and the sums of x - mean and of its
// square. `differences` is what the mean lacks.
struct alignas(16) Moments {
    float count, mean, differences, squares;
};

// Half precision is held as it is between passes, not as the numbers that it becomes.
template <class X, int held, int n>
__device__ __forceinline__ void keep_packed(Pack<X, n> (&x)[held]) {
    if constexpr (sizeof(X) == 2) {
        using Word __attribute__((may_alias)) = uint32_t;  // of elements of another type
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n / 2; ++i) forget(reinterpret_cast<Word*>(&x[j])[i]);
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

// Sums about a number other than the mean lose the digits of (that number - mean)^2 / variance. In
// single precision this much is let pass.
constexpr float most_lost = 0.5f;

// The mean of a power of two of this lane's first numbers, of 1e38 too: of equal ones, just that.
// Half precision needs no more than one vector, and has no registers for more.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ float mean_of_few(const Pack<X, n> (&x)[held], const Mine& share) {
    constexpr int some = !V::precise ? 1 : held < 4 ? held : 4;
    float means[some];
#pragma unroll
    for (int j = 0; j < some; ++j) {
        Chains mean;
#pragma unroll
        for (int i = 0; i < n; ++i)
            mean.of[i % 4] = V::fma(number_at(x[j], i), 1.0f / n, mean.of[i % 4]);
        means[j] = mean.total();
    }
    float mean = means[0];
#pragma unroll
    for (int half = 1; half < some; half *= 2) {
#pragma unroll
        for (int j = 0; j + half < some; j += 2 * half)
            means[j] = V::fma(means[j], 0.5f, V::mul(means[j + half], 0.5f));
        if (share.is_mine(2 * half - 1)) mean = means[0];
    }
    return mean;
}

// Of x - about and its square, over the lanes that have a row in common. Vectors that are not the
// row's are left out.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Pair<float> sums_about(float about, const Pack<X, n> (&x)[held],
                                                  const Mine& share, unsigned lanes) {
    Chains differences, squares;
#pragma unroll
    for (int j = 0; j < held; ++j) {
        if (!share.is_mine(j)) continue;
#pragma unroll
        for (int i = 0; i < n; ++i) {
            const float difference = number_at(x[j], i) - about;
            differences.of[i % 4] += difference;
            squares.of[i % 4] = V::fma(difference, difference, squares.of[i % 4]);
        }
    }
    return sum_in_warp(Pair<float>{differences.total(), squares.total()}, lanes);
}

// Whether sums about a number, of x - about and of its square, are to be made again nearer to the
// mean, which is at `shift` from it. Where they overflow, the mean's may not.
template <class V>
__device__ __forceinline__ bool are_far(const Pair<float>& sums, float shift) {
    const float lost = sums.first * shift;
    if (V::precise && !(lost <= most_lost * (sums.second - lost))) return true;
    return !(sums.second - sums.second == 0);
}

// Of a warp's part of one row. Vectors that are not the row's hold zeros.
template <Norm norm, class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_of_warp(Pack<X, n> (&x)[held], const Mine& share,
                                                   unsigned lanes, float count, float inverse) {
    if constexpr (norm == Norm::rms) {
        Chains squares;
#pragma unroll
        for (int j = 0; j < held; ++j)
#pragma unroll
            for (int i = 0; i < n; ++i) {
                const float value = number_at(x[j], i);
                squares.of[i % 4] = V::fma(value, value, squares.of[i % 4]);
            }
        return {count, 0, 0, sum_in_warp(squares.total(), lanes)};
    } else {
        // About the mean of a few of these numbers first, which takes no sum over lanes. As they
        // are among them, it is never so far off that half precision sees it, but squares may
        // overflow.
        float about = shuffle_first(mean_of_few<V>(x, share), lanes);
        Pair<float> sums = sums_about<V>(about, x, share, lanes);
        float shift = sums.first * inverse;
        const bool far = are_far<V>(sums, shift);
        if (any_in_warp(far)) {
            // A row's result depends on no other row.
            about += far ? shift : 0;
            sums = sums_about<V>(about, x, share, lanes);
            shift = sums.first * inverse;
        }
        const float mean = about + shift, moved = mean - about;
        float left = V::fma(-count, moved, sums.first);
        if constexpr (V::precise) left = V::fma(-count, (mean - moved) - about, left);
        // Of squares that overflow nothing is left to correct.
        if (sums.second - sums.second == 0) sums.second -= moved * (sums.first + left);
        return {count, mean, left, sums.second};
    }
}

// As many parts of a row as the warps of its team can be: each lane has so many of them.
template <Team team>
constexpr int parts_of_lane = team == Team::cluster ? 2 : 1;
template <Team team>
using GatheredFrom = Gathered<Moments, warp * parts_of_lane<team>>;

// The sums of all parts, about one number: each lane of a warp brings some, or zeros.
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

// Of all parts together, the same in all lanes. `about`: the mean of the first part, than which
// none has more numbers. Sums about it lose what the parts' number has of digits at most, which
// half precision does not see.
template <Norm norm, class V, int count>
__device__ __forceinline__ Moments joined(const Moments (&parts)[count], float about,
                                          const Length<float>& length) {
    if constexpr (norm == Norm::rms) {
        float squares = 0;
#pragma unroll
        for (const Moments& part : parts) squares += part.squares;
        return {length.n, 0, 0, sum_in_warp(squares, warp)};
    } else {
        Pair<float> sums = joined_about<V>(about, parts);
        const float shift = sums.first * length.inverse;
        if (are_far<V>(sums, shift)) {
            about += shift;
            sums = joined_about<V>(about, parts);
        }
        return {length.n, about, sums.first, sums.second};
    }
}

// The same in all threads of the row. All threads of its blocks take part.
template <Norm norm, class V, Team team, int tensors, class X, int held, int n>
__device__ __forceinline__ Normal<V> normal_of(Pack<X, n> (&x)[held],
                                               const Share<team, tensors>& share,
                                               const RowsOf<float>& all,
                                               GatheredFrom<team>& gathered, float eps) {
    const bool alone = team == Team::any && all.lanes <= warp;
    const unsigned lanes = alone ? all.lanes : warp;
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
        moments = joined<norm, V>(parts, gathered.items[0].mean, all.length);
    }
    if constexpr (norm == Norm::rms)
        return Normal<V>::root_mean_square(moments.squares, all.length, eps);
    else
        return Normal<V>::layer(moments.mean, moments.differences, moments.squares, all.length,
                                eps);
}

}  // namespace
}  // namespace twinkle_pack::cuda
