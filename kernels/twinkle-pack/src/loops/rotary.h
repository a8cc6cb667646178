// Rotary position embedding of the first `r` of `n` elements of a row; the rest is copied.

// a * b + c * d: if V's fma is fused, the error of the second product is subtracted.
template <class V>
PACK_ANYWHERE inline __attribute__((always_inline)) typename V::reg sum_of_two_products(
    typename V::reg a, typename V::reg b, typename V::reg c, typename V::reg d) {
    const auto product = V::mul(c, d);
    const auto lost = V::fma(c, d, V::mul(product, V::set1(-1)));
    return V::add(V::fma(a, b, product), lost);
}

template <class V>
struct Rotated {
    typename V::reg first, second;

    // x * cos + rotate(x) * sin, where rotate gives (-second, first); transposed: the other way
    // round.
    PACK_ANYWHERE Rotated(typename V::reg x1, typename V::reg x2, typename V::reg c1,
                          typename V::reg c2, typename V::reg s1, typename V::reg s2,
                          bool transposed) {
        const auto minus = V::set1(-1);
        if (transposed) {
            first = sum_of_two_products<V>(x1, c1, x2, s2);
            second = sum_of_two_products<V>(x2, c2, V::mul(x1, minus), s1);
        } else {
            first = sum_of_two_products<V>(x1, c1, V::mul(x2, minus), s1);
            second = sum_of_two_products<V>(x2, c2, x1, s2);
        }
    }
};

template <class V, class X, class C, class R>
void rotate_halves(const X* x, const C* cos, const C* sin, R* result, int64_t r, bool transposed) {
    const int64_t h = r / 2;
    int64_t i = 0;
    for (; i + V::width <= h; i += V::width) {
        const Rotated<V> rotated(V::load(x + i), V::load(x + i + h), V::load(cos + i),
                                 V::load(cos + i + h), V::load(sin + i), V::load(sin + i + h),
                                 transposed);
        V::store(result + i, rotated.first);
        V::store(result + i + h, rotated.second);
    }
    if (i < h) {
        const int64_t left = h - i;
        const Rotated<V> rotated(load_tail<V>(x + i, left), load_tail<V>(x + i + h, left),
                                 load_tail<V>(cos + i, left), load_tail<V>(cos + i + h, left),
                                 load_tail<V>(sin + i, left), load_tail<V>(sin + i + h, left),
                                 transposed);
        store_tail<V>(result + i, rotated.first, left);
        store_tail<V>(result + i + h, rotated.second, left);
    }
}

// Pairs of neighbours: (-x[1], x[0], -x[3], x[2] …).
template <class V, class X, class C, class R>
void rotate_pairs(const X* x, const C* cos, const C* sin, R* result, int64_t r, bool transposed) {
    using reg = typename V::reg;
    const reg signs = V::mul(V::pair_signs(), V::set1(transposed ? -1 : 1));
    const auto rotated = [&](reg value, reg c, reg s) {
        const reg factor = transposed ? V::swap_pairs(s) : s;
        return sum_of_two_products<V>(value, c, V::mul(V::swap_pairs(value), signs), factor);
    };
    map<V, false>(result, r, rotated, x, cos, sin);
}

template <class V, class X, class C, class R, bool pairs>
void rotary_row(const void* x_data, const void* cos_data, const void* sin_data, void* result_data,
                int64_t r, int64_t n, bool transposed) {
    const X* x = static_cast<const X*>(x_data);
    const C* cos = static_cast<const C*>(cos_data);
    const C* sin = static_cast<const C*>(sin_data);
    R* result = static_cast<R*>(result_data);
    if constexpr (pairs)
        rotate_pairs<V>(x, cos, sin, result, r, transposed);
    else
        rotate_halves<V>(x, cos, sin, result, r, transposed);
    if (r < n) map<V, false>(result + r, n - r, [](typename V::reg value) { return value; }, x + r);
}
