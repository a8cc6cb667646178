// The backward loops, included by row_loops.h (and as it is).

// sum(grad * weight * x)
template <class V, class G, class W, class X>
inline __attribute__((always_inline)) double sum_of_products(const G* grad, const W* weight,
                                                             const X* x, int64_t n) {
    constexpr int64_t step = 2 * V::width, block = 128 * step;
    double total = 0;
    int64_t i = 0;
    while (i < n) {
        typename V::reg s0 = V::set1(0), s1 = s0;
        const int64_t stop = n - i < block ? n : i + block;
        for (; i + step <= stop; i += step) {
            const auto a = V::mul(V::load(grad + i), V::load(weight + i));
            const auto b = V::mul(V::load(grad + i + V::width), V::load(weight + i + V::width));
            s0 = V::fma(a, V::load(x + i), s0);
            s1 = V::fma(b, V::load(x + i + V::width), s1);
        }
        for (; i < stop; i += V::width) {
            const int64_t count = stop - i < V::width ? stop - i : V::width;
            const auto a = V::mul(load_tail<V>(grad + i, count), load_tail<V>(weight + i, count));
            s0 = V::fma(a, load_tail<V>(x + i, count), s0);
        }
        i = stop;
        total += V::sum(V::add(s0, s1));
    }
    return total;
}

// One vector: grad_x = scale * grad * weight + along * x, and scale * x * grad for the weight.
template <class V>
struct NormGradient {
    typename V::reg scale, along;

    typename V::reg of_x(typename V::reg grad, typename V::reg x, typename V::reg weight) const {
        return V::fma(V::mul(grad, weight), scale, V::mul(x, along));
    }
    typename V::reg of_weight(typename V::reg grad, typename V::reg x) const {
        return V::mul(V::mul(x, scale), grad);
    }
};

template <class V, class X, class W, class G>
void rms_norm_backward_row(const void* grad_data, const void* x_data, const void* weight_data,
                           void* grad_x_data, double* sums, int64_t n, double eps) {
    const G* grad = static_cast<const G*>(grad_data);
    const X* x = static_cast<const X*>(x_data);
    const W* weight = static_cast<const W*>(weight_data);
    X* grad_x = static_cast<X*>(grad_x_data);
    using scalar = typename V::scalar;

    const double size = static_cast<double>(n);
    const double scale = 1.0 / __builtin_sqrt(sum_of_squares<V>(x, n) / size + eps);
    const double along = -scale * scale * scale * sum_of_products<V>(grad, weight, x, n) / size;
    const NormGradient<V> gradient{V::set1(static_cast<scalar>(scale)),
                                   V::set1(static_cast<scalar>(along))};
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        const auto g = V::load(grad + i), value = V::load(x + i);
        V::store(grad_x + i, gradient.of_x(g, value, V::load(weight + i)));
        V::accumulate(sums + i, gradient.of_weight(g, value));
    }
    if (i < n) {
        const auto g = load_tail<V>(grad + i, n - i), value = load_tail<V>(x + i, n - i);
        const auto w = load_tail<V>(weight + i, n - i);
        store_tail<V>(grad_x + i, gradient.of_x(g, value, w), n - i);
        scalar terms[V::width];
        V::store(terms, gradient.of_weight(g, value));
        for (int64_t lane = 0; lane < n - i; ++lane)
            sums[i + lane] += static_cast<double>(terms[lane]);
    }
}

template <class V, class W>
void store_weight_gradient(const double* sums, int64_t parts, int64_t n, int64_t begin, int64_t end,
                           void* grad_weight) {
    W* result = static_cast<W*>(grad_weight);
    for (int64_t i = begin; i < end; i += V::width) {
        typename V::scalar values[V::width] = {};
        const int64_t count = end - i < V::width ? end - i : V::width;
        for (int64_t lane = 0; lane < count; ++lane) {
            double sum = 0;
            for (int64_t part = 0; part < parts; ++part) sum += sums[part * n + i + lane];
            values[lane] = static_cast<typename V::scalar>(sum);
        }
        store_tail<V>(result + i, V::load(values), count);
    }
}

template <class V, class X, class W, class G>
constexpr RmsNormBackward rms_norm_backward() {
    return {rms_norm_backward_row<V, X, W, G>, store_weight_gradient<V, W>};
}

// With s = 1 / (1 + exp(-gate)): the gradient of up is grad * gate * s, that of gate
// grad * up * s * (1 + gate * (1 - s)).
template <class V>
struct SiluMulGradient {
    typename V::reg of_gate, of_up;

    SiluMulGradient(typename V::reg grad, typename V::reg gate, typename V::reg up) {
        const auto one = V::set1(1), minus = V::set1(-1);
        const auto s = V::div(one, V::add(V::exp(V::mul(gate, minus)), one));
        const auto slope = V::fma(gate, V::fma(s, minus, one), one);
        of_up = V::mul(V::mul(gate, s), grad);
        of_gate = V::mul(V::mul(V::mul(grad, up), s), slope);
    }
};

template <class V, class T>
void silu_mul_backward_row(const void* grad_data, const void* gate_data, const void* up_data,
                           void* grad_gate_data, void* grad_up_data, int64_t n) {
    const T* grad = static_cast<const T*>(grad_data);
    const T* gate = static_cast<const T*>(gate_data);
    const T* up = static_cast<const T*>(up_data);
    T* grad_gate = static_cast<T*>(grad_gate_data);
    T* grad_up = static_cast<T*>(grad_up_data);
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        const SiluMulGradient<V> gradient(V::load(grad + i), V::load(gate + i), V::load(up + i));
        V::store(grad_gate + i, gradient.of_gate);
        V::store(grad_up + i, gradient.of_up);
    }
    if (i < n) {
        const SiluMulGradient<V> gradient(load_tail<V>(grad + i, n - i),
                                          load_tail<V>(gate + i, n - i),
                                          load_tail<V>(up + i, n - i));
        store_tail<V>(grad_gate + i, gradient.of_gate, n - i);
        store_tail<V>(grad_up + i, gradient.of_up, n - i);
    }
}
