// Computations rounded once: a fused multiply-add gives the rounding errors of the steps before the
// last, which are carried along. For a V of float with `sub` and `fmsub` (a * b - c).

// A factor, and its rounding error in float32.
template <class V>
struct SplitScale {
    typename V::reg high, low;

    SplitScale() = default;
    PACK_ANYWHERE SplitScale(typename V::reg high_part, typename V::reg low_part)
        : high(high_part), low(low_part) {}
    explicit SplitScale(double value)
        : high(V::set1(static_cast<float>(value))),
          low(V::set1(static_cast<float>(value - static_cast<float>(value)))) {}
};

template <class V>
PACK_ANYWHERE inline __attribute__((always_inline)) typename V::reg fused_product(
    typename V::reg x, SplitScale<V> scale, typename V::reg weight) {
    const auto normal = V::mul(x, scale.high);
    const auto error = V::fma(x, scale.low, V::fmsub(x, scale.high, normal));
    return V::fma(normal, weight, V::mul(error, weight));
}

template <class V>
PACK_ANYWHERE inline __attribute__((always_inline)) typename V::reg fused_normalized(
    typename V::reg x, SplitScale<V> minus_mean, SplitScale<V> scale, typename V::reg weight,
    typename V::reg bias) {
    const auto difference = V::add(x, minus_mean.high);
    const auto part = V::sub(difference, x);
    const auto lost = V::add(V::sub(x, V::sub(difference, part)), V::sub(minus_mean.high, part));
    const auto normal = V::mul(difference, scale.high);
    const auto rounding = V::fma(difference, scale.low, V::fmsub(difference, scale.high, normal));
    const auto error = V::fma(V::add(lost, minus_mean.low), scale.high, rounding);
    return V::fma(normal, weight, V::fma(error, weight, bias));
}
