#pragma once
// One number with the interface of the CPU loops' vector, so that both share their formulas.

#include "cuda/platform.h"
#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack::cuda {
namespace {

// clang-format off
#include "loops/common.h"
#include "loops/fused.h"
#include "loops/activations.h"
#include "loops/rotary.h"
// clang-format on

// `brief`: the result becomes half precision, for which the hardware's exp and division suffice.
template <class T, bool brief>
struct Scalar {
    using scalar = T;
    using reg = T;
    static constexpr int64_t width = 1;
    static constexpr bool precise = !brief, to_half = brief;

    static __device__ reg set1(T value) { return value; }
    static __device__ reg add(reg a, reg b) { return a + b; }
    static __device__ reg sub(reg a, reg b) { return a - b; }
    static __device__ reg mul(reg a, reg b) { return a * b; }
    static __device__ reg div(reg a, reg b) {
        if constexpr (brief)
            return quotient_approximate(a, b);
        else
            return a / b;
    }
    static __device__ float fma(float a, float b, float c) { return fmaf(a, b, c); }
    static __device__ double fma(double a, double b, double c) { return ::fma(a, b, c); }
    static __device__ reg fmsub(reg a, reg b, reg c) { return fma(a, b, -c); }
    static __device__ float exp(float x) {
        if constexpr (brief)
            return exp_approximate(x);
        else
            return expf(x);
    }
    static __device__ double exp(double x) { return ::exp(x); }
    static __device__ reg quotient(reg a, reg b) { return div(a, b); }
    static __device__ reg clamp(reg a, T least, T most) {
        a = a > most ? most : a;
        return a < least ? least : a;
    }
    static __device__ reg relu(reg a) { return a <= 0 ? 0 : a; }
    static __device__ reg if_negative(reg x, reg a, reg b) { return x < 0 ? a : b; }
    static __device__ reg if_positive(reg x, reg a) { return x <= 0 ? 0 : a; }
    static __device__ float normal_distribution(float x) {
        return fmaf(0.5f, erff(0.70710678118654752440f * x), 0.5f);
    }
    static __device__ double normal_distribution(double x) {
        return 0.5 * erfc(-0.70710678118654752440 * x);
    }

    // Factors as two numbers: the second is the rounding error of the first.
    using Scale = SplitScale<Scalar>;
    static __device__ reg product(reg x, Scale scale, reg weight) {
        return fused_product<Scalar>(x, scale, weight);
    }
    static __device__ reg normalized(reg x, Scale minus_mean, Scale scale, reg weight, reg bias) {
        return fused_normalized<Scalar>(x, minus_mean, scale, weight, bias);
    }
    static __device__ Scale split(reg high, reg low) {
        const reg sum = high + low;
        return {sum, low - (sum - high)};
    }
    // 1 / sqrt(x), with one Newton step, which half precision does not need.
    static __device__ Scale inverse_root_of(reg x) {
        const reg r = inverse_root(x);
        if constexpr (brief) return {r, 0};
        const bool regular = r > 0 && x > 0;  // not infinity, nor NaN
        const reg product = x * r;
        const reg error = fma(-product, r, T(1)) - fmsub(x, r, product) * r;
        const reg half = T(0.5) * r, high = fma(half, error, r);
        return regular ? Scale{high, fma(half, error, r - high)} : Scale{r, 0};
    }
};

template <class T>
__device__ __forceinline__ bool is_finite(T value) {
    return value - value == 0;  // NOLINT(misc-redundant-expression): not of infinities and NaN
}

using Single = Scalar<float, false>;
using Brief = Scalar<float, true>;
using Double = Scalar<double, false>;

template <class T>
struct ComputedIn {
    using type = Brief;
};
template <>
struct ComputedIn<float> {
    using type = Single;
};
template <>
struct ComputedIn<double> {
    using type = Double;
};

// Calls f with a value of the C++ type of each dtype.
template <class F>
void with_type(DType dtype, const F& f) {
    switch (dtype) {
        case DType::float32: return f(float());
        case DType::bfloat16: return f(BFloat16());
        case DType::float16: return f(Float16());
        case DType::float64: return f(double());
        case DType::fp8: return;  // nothing is computed in it
    }
}

}  // namespace
}  // namespace twinkle_pack::cuda
