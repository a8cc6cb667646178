// The common part of the loops of all instruction sets, over a vector type `V` of the including
// file. No include guard in this folder: each file of isa/ compiles the loops in its unnamed
// namespace with its own flags, so that the linker cannot merge a function compiled for AVX-512
// into the portable code. For the same reason nothing of std:: with a body is used.
//
// V: `scalar`, `reg`, `width`, `precise` (a double that needs all its digits), and static functions
//     set1, add, mul, div, fma (a*b+c), fence, load(const T*), store(T*, reg), sum(reg) -> double,
//     accumulate(double*, reg): adds to sums, exp(reg), rounded<T>(reg): the values after a store
//     as T and a load, Scale: a factor, as `high` and its difference from the double;
//     product(x, scale, weight), rounded once; clamp(x, least, most), relu: a NaN stays;
//     if_negative(x, a, b), if_positive(x, a): a where x > 0 or NaN, else 0; swap_pairs(reg),
//     normalized(x, -mean, scale, weight, bias): (x - mean) * scale * weight + bias, rounded once;
//     larger(a, b): b where it is the larger one or NaN, else a (of AVX2 and AVX-512);
//     pair_signs(): -1, 1, -1, 1 …, quotient(a, b): a / b for numbers around 1

// Elements beside the full vectors are loaded through a buffer filled with zeros, unless V has
// load_some and store_some.
template <class V, class T>
inline __attribute__((always_inline)) typename V::reg load_tail(const T* from, int64_t n) {
    if constexpr (requires { V::load_some(from, n); }) {
        return V::load_some(from, n);
    } else {
        T buffer[V::width] = {};
        __builtin_memcpy(buffer, from, static_cast<size_t>(n) * sizeof(T));
        return V::load(buffer);
    }
}

template <class V, class T>
inline __attribute__((always_inline)) void store_tail(T* to, typename V::reg value, int64_t n) {
    if constexpr (requires { V::store_some(to, value, n); }) {
        V::store_some(to, value, n);
    } else {
        T buffer[V::width];
        V::store(buffer, value);
        __builtin_memcpy(to, buffer, static_cast<size_t>(n) * sizeof(T));
    }
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

// result[i] = f(inputs[i]…): two vectors at a time, to hide the latency of each behind the other.
template <class V, bool streamed, class T, class F, class... In>
inline __attribute__((always_inline)) void map(T* result, int64_t n, F f, const In*... inputs) {
    int64_t i = 0;
    for (; i + 2 * V::width <= n; i += 2 * V::width) {
        const auto first = f(V::load(inputs + i)...);
        const auto second = f(V::load(inputs + i + V::width)...);
        put<V, streamed>(result + i, first);
        put<V, streamed>(result + i + V::width, second);
    }
    for (; i + V::width <= n; i += V::width)
        put<V, streamed>(result + i, f(V::load(inputs + i)...));
    if (i < n) store_tail<V>(result + i, f(load_tail<V>(inputs + i, n - i)...), n - i);
}

// The same; bypasses the cache if asked to, for float32, which alone gains.
template <class V, class T, class F, class... In>
inline __attribute__((always_inline)) void map_rows(T* result, int64_t n, bool stream, F f,
                                                    const In*... inputs) {
    (void)stream;
    if constexpr (sizeof(T) == 4) {
        if (stream && can_stream<V>(result)) return map<V, true>(result, n, f, inputs...);
    }
    map<V, false>(result, n, f, inputs...);
}

// The polynomial with these coefficients, highest power first; always unrolled, whatever the
// compiler prefers.
template <class V, class... Coefficients>
PACK_ANYWHERE inline __attribute__((always_inline)) typename V::reg polynomial(
    typename V::reg x, double first, Coefficients... others) {
    using scalar = typename V::scalar;
    auto p = V::set1(static_cast<scalar>(first));
    ((p = V::fma(p, x, V::set1(static_cast<scalar>(others)))), ...);
    return p;
}

// exp by a Taylor series on [-ln2/2, ln2/2] (its error there is below 1e-8), times 2^k.
template <class V>
inline __attribute__((always_inline)) typename V::reg exp_of_remainder(typename V::reg r) {
    return polynomial<V>(r, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
}
