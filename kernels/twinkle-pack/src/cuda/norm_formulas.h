#pragma once
// What the normalizations compute from a row's sums. V: the number of scalar.h.

#include <cmath>
#include <limits>

#include "cuda/scalar.h"

namespace twinkle_pack::cuda {
namespace {

enum class Norm { rms, layer };

// The length of a row, to divide by: as two numbers, what the first lacks is in the second. That is
// as exact as a division, and has none of its branches.
template <class Number>
struct Length {
    Number n, inverse, rest;

    explicit Length(uint64_t length)
        : n(static_cast<Number>(length)), inverse(1 / static_cast<Number>(length)) {
        if (std::fma(inverse, n, Number(-1)) > 0) inverse = std::nextafter(inverse, Number(0));
        rest = std::fma(-inverse, n, Number(1)) / n;
        // Infinity times either has one sign, and is no NaN.
        if (rest == 0) rest = std::numeric_limits<Number>::min();
    }
    template <class V>
    __device__ Number of(Number sum) const {
        // Half precision sees no last digit of a mean of squares.
        return V::precise ? V::fma(sum, inverse, sum * rest) : sum * inverse;
    }
};

// (x - mean) * scale. Where x's digits are all of V's, both are known to more than those.
template <class V>
struct Normal {
    using reg = typename V::reg;
    typename V::Scale scale, minus_mean;

    // The sum of the squares. Where they overflow, the scale is zero, as the original's.
    static __device__ Normal root_mean_square(reg squares, Length<reg> n, reg eps) {
        return {V::inverse_root_of(n.template of<V>(squares) + eps), {0, 0}};
    }
    // The sums of x - mean and of its squares, where `mean` is near the row's: the first tells by
    // how much it is off.
    static __device__ Normal layer(reg mean, reg differences, reg squares, Length<reg> n, reg eps) {
        const reg lost = n.template of<V>(differences);
        // Squares that overflow are the original's, too: its scale is zero then.
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

// What row kernels are told beside where the rows lie.
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
