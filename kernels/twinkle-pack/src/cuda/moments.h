#pragma once
// The sums that a normalization needs, over the part of a row that a warp holds.

#include "cuda/teams.h"

namespace twinkle_pack::cuda {
namespace {

// For the numbers x of some lanes: their count, a number near their mean, and the sums of x - mean
// and of its square. `differences` shows how far `mean` is off.
struct alignas(16) Moments {
    float count, mean, differences, squares;
};

// A sum as several independent chains of additions, which run in parallel.
struct Chains {
    float of[4] = {};

    __device__ __forceinline__ float total() const { return (of[0] + of[1]) + (of[2] + of[3]); }
};

// The mean of this lane's first numbers, a power of two of them; does not overflow at 1e38, and of
// equal numbers is exactly these. Half precision needs one vector at most, and has no registers for
// more.
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

// The sums of x - about and of its square over this lane's numbers. Skips vectors that are not the
// row's.
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

// Sums about a number other than the mean lose the digits of (that number - mean)^2 / variance.
// Single precision accepts this loss.
constexpr float most_lost = 0.5f;

// Whether sums of x - about and of its square must be repeated nearer to the mean, which is `shift`
// away. Where they overflow, those about the mean may not.
template <class V>
__device__ __forceinline__ bool are_far(const Pair<float>& sums, float shift) {
    const float lost = sums.first * shift;
    if (V::precise && !(lost <= most_lost * (sums.second - lost))) return true;
    return !is_finite(sums.second);
}

// Sums about the mean of a few of the numbers, which needs no sum over lanes. That number lies
// among them, so that half precision never notices its error, but squares may overflow; if it is
// far off, the sums are repeated.
template <class V, class X, int held, int n, class Mine>
__device__ __forceinline__ Moments moments_about_few(const Pack<X, n> (&x)[held], const Mine& share,
                                                     unsigned lanes, float count) {
    const float inverse = count > 0 ? quotient_approximate(1, count) : 0;
    float about = shuffle_first(mean_of_few<V>(x, share), lanes);
    Pair<float> sums = sum_in_warp(lane_sums_about<V>(about, x, share), lanes);
    const float shift = sums.first * inverse;
    const bool far = are_far<V>(sums, shift);
    if (any_in_warp(far)) {
        // A row's result must not depend on other rows.
        about += far ? shift : 0;
        sums = sum_in_warp(lane_sums_about<V>(about, x, share), lanes);
    }
    return {count, about, sums.first, sums.second};
}

// This lane's moments, in two passes. `differences` is the remaining error of the mean, for one
// number.
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
    // Exact to the last digit, so that the differences of equal numbers are zero.
    const float near = count > 0 ? quotient_approximate(1, count) : 0;
    const float inverse = V::fma(V::fma(-count, near, 1), near, near);
    const float mean = sum.total() * (most * inverse);
    const Pair<float> sums = lane_sums_about<V>(mean, x, share);
    const float off = sums.first * inverse;
    return {count, mean, off, V::fma(-sums.first, off, sums.second)};
}

// Each lane sums about its own mean, and pairs are merged, so that no digits are lost wherever the
// numbers are. Chan, Golub, LeVeque: Updating Formulae and a Pairwise Algorithm for Computing
// Sample Variances (1979). `even`: all lanes have equally many numbers. Otherwise their sums are
// converted to sums about the common mean, which the same statements add.
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

// The moments of a warp's part of one row. Vectors that are not the row's hold zeros.
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
        // Rows with arbitrary strides leave too few registers for this.
        return moments_merged<V>(x, share, lanes, count, even);
    } else {
        return moments_about_few<V>(x, share, lanes, count);
    }
}

}  // namespace
}  // namespace twinkle_pack::cuda
