// The loops of all instruction sets, over a vector type `V` of the including file. No include
// guard: each file compiles them in its unnamed namespace with its own flags, so that the linker
// cannot merge a function compiled for AVX-512 into the portable code. For the same reason nothing
// of std:: with a body is used.
//
// V: `scalar`, `reg`, `width`, and static functions
//     set1, add, mul, div, fma (a*b+c), fence, load(const T*), store(T*, reg), sum(reg) -> double,
//     accumulate(double*, reg): adds to sums, exp(reg), rounded<T>(reg): the values that a store as
//     T and a load would give, Scale: a factor, as `high` and what that lacks to the double;
//     product(x, scale, weight), rounded once

// Elements in front of the last full vector are loaded through a buffer filled with zeros.
template <class V, class T>
inline __attribute__((always_inline)) typename V::reg load_tail(const T* from, int64_t n) {
    T buffer[V::width] = {};
    __builtin_memcpy(buffer, from, static_cast<size_t>(n) * sizeof(T));
    return V::load(buffer);
}

template <class V, class T>
inline __attribute__((always_inline)) void store_tail(T* to, typename V::reg value, int64_t n) {
    T buffer[V::width];
    V::store(buffer, value);
    __builtin_memcpy(to, buffer, static_cast<size_t>(n) * sizeof(T));
}

// Whether a row's full vectors can be stored past the cache.
template <class V, class T>
inline bool can_stream(const T* to) {
    return reinterpret_cast<uintptr_t>(to) % (V::width * sizeof(T)) == 0;
}

template <class V, bool streamed, class T>
inline __attribute__((always_inline)) void put(T* to, typename V::reg value) {
    if constexpr (streamed)
        V::stream(to, value);
    else
        V::store(to, value);
}

// Independent partial sums, brought together in double after a while: fast, and exact to a few
// roundings however long the row is.
template <class V, class T>
inline __attribute__((always_inline)) double sum_of_squares(const T* x, int64_t n) {
    constexpr int64_t step = 4 * V::width, block = 64 * step;
    double total = 0;
    int64_t i = 0;
    while (i < n) {
        typename V::reg s0 = V::set1(0), s1 = s0, s2 = s0, s3 = s0;
        const int64_t stop = n - i < block ? n : i + block;
        for (; i + step <= stop; i += step) {
            const auto a = V::load(x + i), b = V::load(x + i + V::width);
            const auto c = V::load(x + i + 2 * V::width), d = V::load(x + i + 3 * V::width);
            s0 = V::fma(a, a, s0);
            s1 = V::fma(b, b, s1);
            s2 = V::fma(c, c, s2);
            s3 = V::fma(d, d, s3);
        }
        for (; i + V::width <= stop; i += V::width) {
            const auto a = V::load(x + i);
            s0 = V::fma(a, a, s0);
        }
        if (i < stop) {
            const auto a = load_tail<V>(x + i, stop - i);
            s1 = V::fma(a, a, s1);
            i = stop;
        }
        total += V::sum(V::add(V::add(s0, s1), V::add(s2, s3)));
    }
    return total;
}

// One vector of the result: x's dtype comes between scale and weight, where it is narrower than V.
template <class V, class X>
inline __attribute__((always_inline)) typename V::reg scale_and_weigh(typename V::reg x,
                                                                      typename V::Scale scale,
                                                                      typename V::reg weight) {
    if constexpr (sizeof(X) == 2)
        return V::mul(V::template rounded<X>(V::mul(x, scale.high)), weight);
    else
        return V::product(x, scale, weight);
}

// The next row is fetched meanwhile: the sum of its squares needs it at once.
template <class V, class X, class W, class R>
inline __attribute__((always_inline)) void weigh_row(const X* x, typename V::Scale scale,
                                                     const W* weight, R* result, int64_t n,
                                                     const X* next) {
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        __builtin_prefetch(next + i);
        V::store(result + i, scale_and_weigh<V, X>(V::load(x + i), scale, V::load(weight + i)));
    }
    if (i < n) {
        const auto xs = load_tail<V>(x + i, n - i);
        const auto weights = load_tail<V>(weight + i, n - i);
        store_tail<V>(result + i, scale_and_weigh<V, X>(xs, scale, weights), n - i);
    }
}

template <class V, class X, class W, class R>
void rms_norm_row(const void* x_data, const void* next_row, const void* weight_data,
                  void* result_data, int64_t n, double eps) {
    const X* x = static_cast<const X*>(x_data);
    const X* next = static_cast<const X*>(next_row);
    const W* weight = static_cast<const W*>(weight_data);
    R* result = static_cast<R*>(result_data);

    double sum = sum_of_squares<V>(x, n);
    // Where the original's squares overflow float32, its result is zero.
    if (sizeof(X) < 8 && sum > 3.4028234663852886e38) sum = __builtin_inf();
    const typename V::Scale scale(1.0 / __builtin_sqrt(sum / static_cast<double>(n) + eps));
    weigh_row<V>(x, scale, weight, result, n, next);
}

// silu(g) = g / (1 + exp(-g)); an overflow of exp gives -0, infinity and NaN pass as in PyTorch.
template <class V>
inline __attribute__((always_inline)) typename V::reg silu_mul(typename V::reg gate,
                                                               typename V::reg up) {
    const auto e = V::exp(V::mul(gate, V::set1(-1)));
    return V::mul(V::div(gate, V::add(e, V::set1(1))), up);
}

template <class V, bool streamed, class T>
inline __attribute__((always_inline)) void silu_mul_values(const T* gate, const T* up, T* result,
                                                           int64_t n) {
    int64_t i = 0;
    for (; i + 2 * V::width <= n; i += 2 * V::width) {
        const auto first = silu_mul<V>(V::load(gate + i), V::load(up + i));
        const auto second = silu_mul<V>(V::load(gate + i + V::width), V::load(up + i + V::width));
        put<V, streamed>(result + i, first);
        put<V, streamed>(result + i + V::width, second);
    }
    for (; i + V::width <= n; i += V::width)
        put<V, streamed>(result + i, silu_mul<V>(V::load(gate + i), V::load(up + i)));
    if (i < n) {
        const auto gates = load_tail<V>(gate + i, n - i), ups = load_tail<V>(up + i, n - i);
        store_tail<V>(result + i, silu_mul<V>(gates, ups), n - i);
    }
}

template <class V, class T>
void silu_mul_row(const void* gate_data, const void* up_data, void* result_data, int64_t n,
                  bool stream) {
    const T* gate = static_cast<const T*>(gate_data);
    const T* up = static_cast<const T*>(up_data);
    T* result = static_cast<T*>(result_data);
    (void)stream;
    if constexpr (sizeof(T) == 4) {
        if (stream && can_stream<V>(result)) return silu_mul_values<V, true>(gate, up, result, n);
    }
    silu_mul_values<V, false>(gate, up, result, n);
}

// exp by a Taylor series on [-ln2/2, ln2/2] (its error there is below 1e-8), times 2^k.
template <class V>
inline __attribute__((always_inline)) typename V::reg exp_of_remainder(typename V::reg r) {
    constexpr float coefficients[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1, 1};
    auto p = V::set1(1.0f / 5040);
    for (float coefficient : coefficients) p = V::fma(p, r, V::set1(coefficient));
    return p;
}

#include "row_loops_backward.h"

// The table of the types that a float vector serves. Wide does float32 as x in rms_norm; Double,
// vectors of double, the gradients of float32: more roundings follow each other there.
template <class V, class Double, class Wide = V>
constexpr RowFunctions float_row_functions(const char* isa) {
    using F = float;
    using B = BFloat16;
    using H = Float16;
    return {
        isa,
        V::fence,
        {{rms_norm_row<Wide, F, F, F>, rms_norm_row<Wide, F, B, F>, rms_norm_row<Wide, F, H, F>,
          nullptr},
         {rms_norm_row<V, B, F, F>, rms_norm_row<V, B, B, B>, rms_norm_row<V, B, H, F>, nullptr},
         {rms_norm_row<V, H, F, F>, rms_norm_row<V, H, B, F>, rms_norm_row<V, H, H, H>, nullptr},
         {nullptr, nullptr, nullptr, nullptr}},
        {silu_mul_row<V, F>, silu_mul_row<V, B>, silu_mul_row<V, H>, nullptr},
        {{rms_norm_backward<Double, F, F, F>(), rms_norm_backward<Double, F, B, F>(),
          rms_norm_backward<Double, F, H, F>(), RmsNormBackward{}},
         {rms_norm_backward<V, B, F, F>(), rms_norm_backward<V, B, B, B>(),
          rms_norm_backward<V, B, H, F>(), RmsNormBackward{}},
         {rms_norm_backward<V, H, F, F>(), rms_norm_backward<V, H, B, F>(),
          rms_norm_backward<V, H, H, H>(), RmsNormBackward{}},
         {}},
        {silu_mul_backward_row<Double, F>, silu_mul_backward_row<V, B>, silu_mul_backward_row<V, H>,
         nullptr}};
}
