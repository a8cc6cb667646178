// Normalization over a row.

struct None {};  // no weight

// The factor of the normalized values: offset + weight, or one.
template <class V, class W>
struct Weights {
    using reg = typename V::reg;
    const W* weight;
    reg offset;

    Weights(const void* data, double first)
        : weight(static_cast<const W*>(data)),
          offset(V::set1(static_cast<typename V::scalar>(first))) {}
    reg at(int64_t i) const { return V::add(V::load(weight + i), offset); }
    reg tail(int64_t i, int64_t n) const { return V::add(load_tail<V>(weight + i, n), offset); }
};
template <class V>
struct Weights<V, None> {
    using reg = typename V::reg;
    Weights(const void*, double) {}
    reg at(int64_t) const { return V::set1(1); }
    reg tail(int64_t, int64_t) const { return V::set1(1); }
};

// One vector of the result. `between`: rounds to x's dtype between scale and weight, if it is
// narrower than V.
template <class V, class X, class W, bool between>
inline __attribute__((always_inline)) typename V::reg scale_and_weigh(typename V::reg x,
                                                                      typename V::Scale scale,
                                                                      typename V::reg weight) {
    if constexpr (sizeof(X) > 2)
        return V::product(x, scale, weight);
    else if constexpr (between)
        return V::mul(V::template rounded<X>(V::mul(x, scale.high)), weight);
    else
        return V::mul(V::mul(x, scale.high), weight);
}

// The factor that makes the mean of the squares one.
template <class V, class X>
inline __attribute__((always_inline)) double root_mean_square_scale(const X* x, int64_t n,
                                                                    double eps) {
    double sum = sum_of_squares<V>(x, n);
    // If the original's squares overflow float32, its result is zero.
    if (sizeof(X) < 8 && sum > 3.4028234663852886e38) sum = __builtin_inf();
    return 1.0 / __builtin_sqrt(sum / static_cast<double>(n) + eps);
}

// Prefetches the next row: the sum of its squares needs it at once.
template <class V, class X, class W, class R, bool between>
void rms_norm_row(const void* x_data, const void* next_row, const void* weight_data,
                  void* result_data, int64_t n, double eps, double offset) {
    const X* x = static_cast<const X*>(x_data);
    const X* next = static_cast<const X*>(next_row);
    R* result = static_cast<R*>(result_data);
    const Weights<V, W> weights(weight_data, offset);
    const typename V::Scale scale(root_mean_square_scale<V>(x, n, eps));
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        __builtin_prefetch(next + i);
        V::store(result + i,
                 scale_and_weigh<V, X, W, between>(V::load(x + i), scale, weights.at(i)));
    }
    if (i < n) {
        const auto values = load_tail<V>(x + i, n - i);
        store_tail<V>(result + i,
                      scale_and_weigh<V, X, W, between>(values, scale, weights.tail(i, n - i)),
                      n - i);
    }
}

// Mean and 1 / sqrt(variance + eps). The variance is computed from differences: E[x²] - E[x]² would
// lose it if the mean is large.
template <class V>
struct Moments {
    double mean, scale;

    template <class X>
    Moments(const X* x, int64_t n, double eps) {
        const double size = static_cast<double>(n);
        mean = sum_over<V>(
                   n, [](typename V::reg sum, typename V::reg v) { return V::add(sum, v); }, x) /
               size;
        const auto minus = V::set1(static_cast<typename V::scalar>(-mean));
        const double squares = sum_over<V>(
            n,
            [minus](typename V::reg sum, typename V::reg v) {
                const auto difference = V::add(v, minus);
                return V::fma(difference, difference, sum);
            },
            x);
        scale = 1.0 / __builtin_sqrt(squares / size + eps);
    }
};

// One vector of layer_norm. Carries the errors of float32's steps along if V can compute them.
template <class V, class X, class W>
struct Normalize {
    using reg = typename V::reg;
    typename V::Scale minus_mean, scale;

    explicit Normalize(const Moments<V>& moments)
        : minus_mean(-moments.mean), scale(moments.scale) {}

    reg operator()(reg x, reg weight, reg bias) const {
        if constexpr (sizeof(X) == 4) return V::normalized(x, minus_mean, scale, weight, bias);
        const reg normal = V::mul(V::add(x, minus_mean.high), scale.high);
        return V::fma(normal, weight, bias);
    }
};

template <class V, class X, class W>
void layer_norm_row(const void* x_data, const void* next_row, const void* weight_data,
                    const void* bias_data, void* result_data, int64_t n, double eps) {
    const X* x = static_cast<const X*>(x_data);
    const X* next = static_cast<const X*>(next_row);
    X* result = static_cast<X*>(result_data);
    const Weights<V, W> weights(weight_data, 0), biases(bias_data, 0);
    const Normalize<V, X, W> normalize(Moments<V>(x, n, eps));
    const auto bias_of = [&](typename V::reg bias) {
        return __is_same(W, None) ? V::set1(0) : bias;
    };
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) {
        __builtin_prefetch(next + i);
        V::store(result + i, normalize(V::load(x + i), weights.at(i), bias_of(biases.at(i))));
    }
    if (i < n)
        store_tail<V>(result + i,
                      normalize(load_tail<V>(x + i, n - i), weights.tail(i, n - i),
                                bias_of(biases.tail(i, n - i))),
                      n - i);
}
