#pragma once
// The sums that a normalization needs, over what a warp holds of a row.

#include "cuda/teams.h"

namespace twinkle_pack::cuda {
namespace {

// Of the numbers x of some lanes: how many, about which mean, and the sums of x - mean and of its
// square. `differences` is what the mean lacks.
struct alignas(16) Moments {
    float count, mean, differences, squares;
};

// A sum as several chains of additions, which go on beside each other.
struct Chains {
    float of[4] = {};

    __device__ __forceinline__ float total() const { return (of[0] + of[1]) + (of[2] + of[3]); }
};

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

// Of x - about and its square, of this lane's numbers. Vectors that are not the row's are left out.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Pair<float> lane_sums_about(float about, const Pack<X, n> (&x)[held],
                                                       const Mine& share) {
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
    return {differences.total(), squares.total()};
}

// Sums about a number other than the mean lose the digits of (that number - mean)^2 / variance. In
// single precision this much is let pass.
constexpr float most_lost = 0.5f;

// Whether sums about a number, of x - about and of its square, are to be made again nearer to the
// mean, which is at `shift` from it. Where they overflow, the mean's may not.
template <class V>
__device__ __forceinline__ bool are_far(const Pair<float>& sums, float shift) {
    const float lost = sums.first * shift;
    if (V::precise && !(lost <= most_lost * (sums.second - lost))) return true;
    return !is_finite(sums.second);
}

// About the mean of a few of the numbers, which takes no sum over lanes. As they are among them,
// half precision never sees how far off that is, but squares may overflow; where it is far off,
// again.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_about_few(const Pack<X, n> (&x)[held], const Mine& share,
                                                     unsigned lanes, float count) {
    const float inverse = count > 0 ? quotient_approximate(1, count) : 0;
    float about = shuffle_first(mean_of_few<V>(x, share), lanes);
    Pair<float> sums = sum_in_warp(lane_sums_about<V>(about, x, share), lanes);
    const float shift = sums.first * inverse;
    const bool far = are_far<V>(sums, shift);
    if (any_in_warp(far)) {
        // A row's result depends on no other row.
        about += far ? shift : 0;
        sums = sum_in_warp(lane_sums_about<V>(about, x, share), lanes);
    }
    return {count, about, sums.first, sums.second};
}

// Of this lane's numbers, in two passes. `differences` is what the mean lacks, of one number.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_of_lane(const Pack<X, n> (&x)[held], const Mine& share) {
    constexpr float most = held * n;
    Chains sum;
    float count = 0;
#pragma unroll
    for (int j = 0; j < held; ++j) {
        if (share.is_mine(j)) count += n;
#pragma unroll
        for (int i = 0; i < n; ++i)
            sum.of[i % 4] = V::fma(number_at(x[j], i), 1 / most, sum.of[i % 4]);
    }
    // To the last digit, so that nothing is left of equal numbers.
    const float near = count > 0 ? quotient_approximate(1, count) : 0;
    const float inverse = V::fma(V::fma(-count, near, 1), near, near);
    const float mean = sum.total() * (most * inverse);
    const Pair<float> sums = lane_sums_about<V>(mean, x, share);
    const float off = sums.first * inverse;
    return {count, mean, off, V::fma(-sums.first, off, sums.second)};
}

// Each lane sums about its own mean, and pairs are merged, so that no digits are lost wherever the
// numbers are. Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances (1979). `even`: all lanes have as many numbers. Else sums about the mean of all
// are made of theirs, which the same statements add.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_merged(const Pack<X, n> (&x)[held], const Mine& share,
                                                  unsigned lanes, float count, bool even) {
    const Moments lane = moments_of_lane<V>(x, share);
    const float about = shuffle_first(lane.mean, lanes);
    float mean = (lane.mean - about) + lane.differences, squares = lane.squares;
    float weight = lane.count * 0.5f, half = 0.5f, center = 0;
    if (!even) {
        center = quotient_approximate(sum_in_warp(lane.count * mean, lanes), count);
        mean -= center;
        squares = V::fma(lane.count * mean, mean, squares);
        mean *= quotient_approximate(lane.count, count);
        weight = 0, half = 1;
    }
#pragma unroll
    for (unsigned distance = 1; distance < warp; distance *= 2) {
        if (distance >= lanes) continue;
        const float other = other_lane(mean, distance), apart = mean - other;
        squares = V::fma(apart * weight, apart, squares + other_lane(squares, distance));
        mean = (mean + other) * half;
        weight *= 2;
    }
    const float off = center + mean, all = about + off, moved = all - about;
    const float rest = (about - (all - moved)) + (off - moved);
    const float left = count * rest;
    return {count, all, left, V::fma(left, rest, squares)};
}

// Of a warp's part of one row. Vectors that are not the row's hold zeros.
template <Norm norm, class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_of_warp(Pack<X, n> (&x)[held], const Mine& share,
                                                   unsigned lanes, float count, bool even) {
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
    } else if constexpr (V::precise && Mine::loads_all) {
        // Where rows lie anyhow there are too few registers for this.
        return moments_merged<V>(x, share, lanes, count, even);
    } else {
        return moments_about_few<V>(x, share, lanes, count);
    }
}

}  // namespace
}  // namespace twinkle_pack::cuda
