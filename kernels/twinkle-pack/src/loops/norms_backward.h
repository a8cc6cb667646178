// The gradients of normalization over a row.

// Adds the lanes of the last, incomplete vector to sums.
template <class V>
inline void accumulate_tail(double* sums, typename V::reg value, int64_t n) {
    typename V::scalar lanes[V::width];
    V::store(lanes, value);
    for (int64_t lane = 0; lane < n; ++lane) sums[lane] += static_cast<double>(lanes[lane]);
}

// grad_x = scale * grad * weight + along * x + level, and normal * grad for the weight, where
// normal = (x - mean) * scale.
template <class V>
struct NormGradient {
    typename V::reg scale, along, level, minus_mean;

    typename V::reg of_x(typename V::reg grad, typename V::reg x, typename V::reg weight) const {
        const auto difference = V::add(x, minus_mean);
        return V::fma(V::mul(grad, weight), scale, V::fma(difference, along, level));
    }
    typename V::reg of_weight(typename V::reg grad, typename V::reg x) const {
        return V::mul(V::mul(V::add(x, minus_mean), scale), grad);
    }
};

// `sums`: n of the weight's gradient, then, with a bias, n of the bias's.
template <class V, class X, class W, class G, bool with_bias>
inline __attribute__((always_inline)) void norm_gradients(const NormGradient<V>& gradient,
                                                          const G* grad, const X* x,
                                                          const Weights<V, W>& weights, X* grad_x,
                                                          double* sums, int64_t n) {
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        const auto g = V::load(grad + i), value = V::load(x + i);
        V::store(grad_x + i, gradient.of_x(g, value, weights.at(i)));
        if constexpr (!__is_same(W, None)) {
            V::accumulate(sums + i, gradient.of_weight(g, value));
            if constexpr (with_bias) V::accumulate(sums + n + i, g);
        }
    }
    if (i == n) return;
    const int64_t left = n - i;
    const auto g = load_tail<V>(grad + i, left), value = load_tail<V>(x + i, left);
    store_tail<V>(grad_x + i, gradient.of_x(g, value, weights.tail(i, left)), left);
    if constexpr (!__is_same(W, None)) {
        accumulate_tail<V>(sums + i, gradient.of_weight(g, value), left);
        if constexpr (with_bias) accumulate_tail<V>(sums + n + i, g, left);
    }
}

// The weight as a row that sum_over can read: a missing one reads as ones.
template <class V, class W, class X, class G>
inline __attribute__((always_inline)) double sum_of_products(const G* grad, const void* weight,
                                                             double offset, const X* x, double mean,
                                                             int64_t n) {
    using reg = typename V::reg;
    using scalar = typename V::scalar;
    const reg minus = V::set1(static_cast<scalar>(-mean));
    if constexpr (__is_same(W, None)) {
        return sum_over<V>(
            n, [&](reg sum, reg g, reg v) { return V::fma(g, V::add(v, minus), sum); }, grad, x);
    } else {
        const reg first = V::set1(static_cast<scalar>(offset));
        return sum_over<V>(
            n,
            [&](reg sum, reg g, reg w, reg v) {
                return V::fma(V::mul(g, V::add(w, first)), V::add(v, minus), sum);
            },
            grad, static_cast<const W*>(weight), x);
    }
}

template <class V, class W, class G>
inline __attribute__((always_inline)) double sum_of_weighted(const G* grad, const void* weight,
                                                             int64_t n) {
    using reg = typename V::reg;
    if constexpr (__is_same(W, None))
        return sum_over<V>(n, [](reg sum, reg g) { return V::add(sum, g); }, grad);
    else
        return sum_over<V>(
            n, [](reg sum, reg g, reg w) { return V::fma(g, w, sum); }, grad,
            static_cast<const W*>(weight));
}

template <class V, class X, class W, class G>
void rms_norm_backward_row(const void* grad_data, const void* x_data, const void* weight_data,
                           void* grad_x, double* sums, int64_t n, double eps, double offset) {
    using scalar = typename V::scalar;
    const G* grad = static_cast<const G*>(grad_data);
    const X* x = static_cast<const X*>(x_data);
    const double size = static_cast<double>(n);
    const double scale = 1.0 / __builtin_sqrt(sum_of_squares<V>(x, n) / size + eps);
    const double product = sum_of_products<V, W>(grad, weight_data, offset, x, 0, n);
    const double along = -scale * scale * scale * product / size;
    const NormGradient<V> gradient{V::set1(static_cast<scalar>(scale)),
                                   V::set1(static_cast<scalar>(along)), V::set1(0), V::set1(0)};
    norm_gradients<V, X, W, G, false>(gradient, grad, x, Weights<V, W>(weight_data, offset),
                                      static_cast<X*>(grad_x), sums, n);
}

template <class V, class X, class W>
void layer_norm_backward_row(const void* grad_data, const void* x_data, const void* weight_data,
                             void* grad_x, double* sums, int64_t n, double eps, double) {
    using scalar = typename V::scalar;
    const X* grad = static_cast<const X*>(grad_data);
    const X* x = static_cast<const X*>(x_data);
    const double size = static_cast<double>(n);
    const Moments<V> moments(x, n, eps);
    const double scale = moments.scale;
    const double product = sum_of_products<V, W>(grad, weight_data, 0, x, moments.mean, n);
    const double along = -scale * scale * scale * product / size;
    const double level = -scale * sum_of_weighted<V, W>(grad, weight_data, n) / size;
    const NormGradient<V> gradient{
        V::set1(static_cast<scalar>(scale)), V::set1(static_cast<scalar>(along)),
        V::set1(static_cast<scalar>(level)), V::set1(static_cast<scalar>(-moments.mean))};
    norm_gradients<V, X, W, X, true>(gradient, grad, x, Weights<V, W>(weight_data, 0),
                                     static_cast<X*>(grad_x), sums, n);
}

// Adds up `parts` rows of sums, `stride` apart, and rounds the result once.
template <class V, class W>
void store_weight_gradient(const double* sums, int64_t parts, int64_t stride, int64_t begin,
                           int64_t end, void* grad_weight) {
    W* result = static_cast<W*>(grad_weight);
    for (int64_t i = begin; i < end; i += V::width) {
        typename V::scalar values[V::width] = {};
        const int64_t count = end - i < V::width ? end - i : V::width;
        for (int64_t lane = 0; lane < count; ++lane) {
            double sum = 0;
            for (int64_t part = 0; part < parts; ++part) sum += sums[part * stride + i + lane];
            values[lane] = static_cast<typename V::scalar>(sum);
        }
        store_tail<V>(result + i, V::load(values), count);
    }
}
