#pragma once
// The normalizations' formulas on a row's sums. V: a number type of scalar.h.

#include <cmath>
#include <limits>

#include "cuda/scalar.h"

namespace twinkle_pack::cuda {
namespace {

enum class Norm { rms, layer };

// The length of a row as a divisor: its inverse in two numbers, the second with the rounding error
// of the first. As exact as a division, without its branches.
template <class Number>
struct Length {
    Number n, inverse, rest;

    explicit Length(uint64_t length)
        : n(static_cast<Number>(length)), inverse(1 / static_cast<Number>(length)) {
        if (std::fma(inverse, n, Number(-1)) > 0) inverse = std::nextafter(inverse, Number(0));
        rest = std::fma(-inverse, n, Number(1)) / n;
        // So infinity times either number has the same sign, and is no NaN.
        if (rest == 0) rest = std::numeric_limits<Number>::min();
    }
    template <class V>
    __device__ Number of(Number sum) const {
        // The last digit of a mean of squares is invisible in half precision.
        return V::precise ? V::fma(sum, inverse, sum * rest) : sum * inverse;
    }
};

// (x - mean) * scale. If V has no more digits than x, mean and scale have extra ones.
template <class V>
struct Normal {
    using reg = typename V::reg;
    typename V::Scale scale, minus_mean;

    // `squares`: the sum of the squares. If it overflows, the scale is zero, like the original's.
    static __device__ Normal root_mean_square(reg squares, Length<reg> n, reg eps) {
        return {V::inverse_root_of(n.template of<V>(squares) + eps), {0, 0}};
    }
    // `differences` and `squares`: the sums of x - mean and of its squares, where `mean` is near
    // the row's; the first gives its error.
    static __device__ Normal layer(reg mean, reg differences, reg squares, Length<reg> n, reg eps) {
        const reg lost = n.template of<V>(differences);
        // Squares that overflow here do so in the original, too: its scale is zero then.
        reg spread = is_finite(squares) ? V::fma(-differences, lost, squares) : squares;
        spread = spread < 0 ? 0 : spread;
        return {V::inverse_root_of(n.template of<V>(spread) + eps), V::split(-mean, -lost)};
    }

    __device__ reg difference(reg x) const {
        const reg most = x + minus_mean.high;
        if constexpr (V::precise) return most + minus_mean.low;
        return most;  // half precision sees nothing of the rest
    }
};

// grad_x = scale * grad * weight + along * difference + level.
template <class V>
struct RowGradient {
    using reg = typename V::reg;
    reg scale, along, level;

    __device__ reg of_x(reg grad, reg difference, reg weight) const {
        return V::fma(V::mul(grad, weight), scale, V::fma(difference, along, level));
    }
    __device__ reg of_weight(reg grad, reg difference) const {
        return V::mul(V::mul(difference, scale), grad);
    }
};

// `products`: the sum of grad * weight * difference; `weighted`: of grad * weight.
template <class V>
__device__ __forceinline__ RowGradient<V> row_gradient(typename V::reg scale,
                                                       typename V::reg products,
                                                       typename V::reg weighted,
                                                       Length<typename V::reg> n) {
    return {scale, -scale * scale * scale * n.template of<V>(products),
            -scale * n.template of<V>(weighted)};
}

// Parameters of row kernels beside the rows' addresses.
template <class Number>
struct AffineOf {
    const void* weight;  // null: ones
    const void* bias;    // null: zeros
    Number eps, offset;
    bool between;  // rounded to x's dtype before the weight

    template <class Other>
    AffineOf<Other> in() const {
        return {weight, bias, static_cast<Other>(eps), static_cast<Other>(offset), between};
    }
};
using Affine = AffineOf<double>;

}  // namespace
}  // namespace twinkle_pack::cuda
