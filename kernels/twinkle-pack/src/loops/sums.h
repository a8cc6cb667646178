// Sums over a row: independent partial sums, combined in double at intervals: fast, and exact to a
// few roundings however long the row is.

// The sum of f(inputs[i]…).
template <class V, class F, class... In>
inline __attribute__((always_inline)) double sum_over(int64_t n, F f, const In*... inputs) {
    constexpr int64_t step = 4 * V::width, block = 64 * step;
    double total = 0;
    int64_t i = 0;
    while (i < n) {
        typename V::reg s0 = V::set1(0), s1 = s0, s2 = s0, s3 = s0;
        const int64_t stop = n - i < block ? n : i + block;
        for (; i + step <= stop; i += step) {
            s0 = f(s0, V::load(inputs + i)...);
            s1 = f(s1, V::load(inputs + i + V::width)...);
            s2 = f(s2, V::load(inputs + i + 2 * V::width)...);
            s3 = f(s3, V::load(inputs + i + 3 * V::width)...);
        }
        for (; i + V::width <= stop; i += V::width) s0 = f(s0, V::load(inputs + i)...);
        total += V::sum(V::add(V::add(s0, s1), V::add(s2, s3)));
        if (i < stop) {
            // Lanes beyond the row's end hold f of zeros, and must not count.
            const int64_t count = stop - i;
            typename V::scalar lanes[V::width];
            V::store(lanes, f(V::set1(0), load_tail<V>(inputs + i, count)...));
            for (int64_t lane = 0; lane < count; ++lane) total += static_cast<double>(lanes[lane]);
            i = stop;
        }
    }
    return total;
}

template <class V, class T>
inline __attribute__((always_inline)) double sum_of_squares(const T* x, int64_t n) {
    return sum_over<V>(
        n, [](typename V::reg sum, typename V::reg value) { return V::fma(value, value, sum); }, x);
}
