// The activations: `value(x)`, and `slope(x)`: the value and the derivative together.

template <class V>
struct Slope {
    typename V::reg value, derivative;
};

// Whether V's results are rounded to half precision in the end, on a machine where exp and a
// division are cheap.
template <class V>
constexpr bool rounds_to_half = requires { requires V::to_half; };

// x * sigmoid(p(x)) = x / (1 + exp(-p)). An overflow of exp gives -0; infinity and NaN pass as in
// PyTorch.
template <template <class> class Exponent>
struct Sigmoidal {
    template <class V>
    PACK_ANYWHERE static typename V::reg value(typename V::reg x) {
        const auto e = V::exp(V::mul(Exponent<V>::value(x), V::set1(-1)));
        return V::div(x, V::add(e, V::set1(1)));
    }

    template <class V>
    PACK_ANYWHERE static Slope<V> slope(typename V::reg x) {
        constexpr auto big =
            static_cast<typename V::scalar>(sizeof(typename V::scalar) == 4 ? 1e38 : 1e308);
        const auto one = V::set1(1);
        const auto e = V::exp(V::mul(Exponent<V>::value(x), V::set1(-1)));
        const auto s = V::div(one, V::add(e, one));
        const auto value = V::mul(x, s);
        // 1 - s is e * s, which loses no digits where s is near 1; where e overflows, value is 0.
        const auto rest = V::mul(V::mul(V::clamp(e, 0, big), s), Exponent<V>::derivative(x));
        return {value, V::fma(value, rest, s)};
    }
};

template <class V>
struct Plain {
    PACK_ANYWHERE static typename V::reg value(typename V::reg x) { return x; }
    PACK_ANYWHERE static typename V::reg derivative(typename V::reg) { return V::set1(1); }
};

template <class V>
struct Quick {
    PACK_ANYWHERE static typename V::reg value(typename V::reg x) { return V::mul(x, factor()); }
    PACK_ANYWHERE static typename V::reg derivative(typename V::reg) { return factor(); }
    PACK_ANYWHERE static typename V::reg factor() {
        return V::set1(static_cast<typename V::scalar>(1.702));
    }
};

// 0.5 * (1 + tanh(a * (x + 0.044715 x³))) = sigmoid(2 a (x + 0.044715 x³)), without the
// cancellation in 1 + tanh. Beyond 50 it is 0 or 1 in every dtype; x³ must not overflow.
template <class V, bool fast>
struct Cubic {
    using scalar = typename V::scalar;
    using reg = typename V::reg;
    // sqrt(2 / pi); FastGELU has ten digits of it.
    static constexpr double root = fast ? 0.7978845608 : 0.79788456080286535588;
    static constexpr double cube = 0.044715;

    PACK_ANYWHERE static reg value(reg x) {
        const reg c = within(x);
        const reg inner =
            V::fma(V::mul(c, c), V::set1(scalar(2 * root * cube)), V::set1(scalar(2 * root)));
        return V::mul(c, inner);
    }
    PACK_ANYWHERE static reg derivative(reg x) {
        const reg c = within(x);
        return V::fma(V::mul(c, c), V::set1(scalar(6 * root * cube)), V::set1(scalar(2 * root)));
    }
    PACK_ANYWHERE static reg within(reg x) { return V::clamp(x, -50, 50); }
};
template <class V>
using Tanh = Cubic<V, false>;
template <class V>
using Fast = Cubic<V, true>;

using Silu = Sigmoidal<Plain>;
using GeluQuick = Sigmoidal<Quick>;
using GeluTanh = Sigmoidal<Tanh>;
using GeluFast = Sigmoidal<Fast>;

// x * Phi(x), with the normal distribution's Phi.
struct Gelu {
    template <class V>
    PACK_ANYWHERE static typename V::reg value(typename V::reg x) {
        if constexpr (V::precise) return V::mul(x, V::normal_distribution(x));
        if constexpr (rounds_to_half<V>) return V::div(x, V::add(odds_against<V>(x), V::set1(1)));
        const auto half = V::mul(x, V::set1(static_cast<typename V::scalar>(0.5)));
        return saturated<V>(x, V::fma(x, above_half<V>(x), half), x);
    }

    template <class V>
    PACK_ANYWHERE static Slope<V> slope(typename V::reg x) {
        using scalar = typename V::scalar;
        const auto phi = distribution<V>(x);
        const auto bell = V::exp(V::mul(V::mul(x, x), V::set1(scalar(-0.5))));
        const auto density = V::mul(bell, V::set1(scalar(0.39894228040143267794)));
        // Where x² has overflowed, the density is zero.
        return {V::mul(x, phi), V::fma(V::clamp(x, -50, 50), density, phi)};
    }

private:
    // (1 - Phi(x)) / Phi(x) = exp(-x Q(x²)). Q is fitted up to 5: the relative error of Phi is
    // 4e-4.
    template <class V>
    PACK_ANYWHERE static typename V::reg odds_against(typename V::reg x) {
        const auto square = V::clamp(V::mul(x, x), 0, 25);
        const auto q = polynomial<V>(square, -2.01151559e-08, 1.42297154e-06, -2.72509769e-05,
                                     -0.00058774031, 0.0740787481, 1.59467549);
        return V::exp(V::mul(V::mul(x, q), V::set1(-1)));
    }

    template <class V>
    PACK_ANYWHERE static typename V::reg distribution(typename V::reg x) {
        if constexpr (V::precise) return V::normal_distribution(x);
        if constexpr (rounds_to_half<V>)
            return V::div(V::set1(1), V::add(odds_against<V>(x), V::set1(1)));
        const auto half = V::set1(static_cast<typename V::scalar>(0.5));
        const auto c = within<V>(x);
        return saturated<V>(x, V::fma(c, ratio<V>(c), half), V::set1(1));
    }

    template <class V>
    PACK_ANYWHERE static typename V::reg above_half(typename V::reg x) {
        const auto c = within<V>(x);
        return V::mul(c, ratio<V>(c));
    }

    template <class V>
    PACK_ANYWHERE static typename V::reg within(typename V::reg x) {
        using scalar = typename V::scalar;
        return V::clamp(x, scalar(-5.6), scalar(5.6));
    }

    // (Phi(x) - 0.5) / x = P(x²) / Q(x²) up to 5.6: P and Q are fitted for the least relative error
    // (2.2e-8).
    template <class V>
    PACK_ANYWHERE static typename V::reg ratio(typename V::reg x) {
        const auto square = V::mul(x, x);
        const auto above = polynomial<V>(square, 2.2298281757095842e-08, 6.289660452368305e-06,
                                         0.00016891517084650855, 0.004677262153710807,
                                         0.03392766696670562, 0.39894227188712444);
        const auto below =
            polynomial<V>(square, 1.1796741954616482e-06, 7.333961830144346e-05,
                          0.0018854109996319425, 0.0286767653096221, 0.2517103765428732, 1.0);
        return V::quotient(above, below);
    }

    // Phi(-5.6) is 1.1e-8, of which float32 keeps no digit.
    template <class V>
    PACK_ANYWHERE static typename V::reg saturated(typename V::reg x, typename V::reg value,
                                                   typename V::reg high) {
        const auto limit = V::set1(static_cast<typename V::scalar>(5.6));
        const auto upper = V::if_negative(V::fma(x, V::set1(-1), limit), high, value);
        return V::if_negative(V::add(x, limit), V::mul(x, V::set1(0)), upper);
    }
};

struct Relu {
    template <class V>
    PACK_ANYWHERE static typename V::reg value(typename V::reg x) {
        return V::relu(x);
    }
    template <class V>
    PACK_ANYWHERE static Slope<V> slope(typename V::reg x) {
        return {V::relu(x), V::if_positive(x, V::set1(1))};
    }
};

// Of x, where g is that of A's value. An infinite one is none where the value is constant.
template <class V, class A>
PACK_ANYWHERE typename V::reg gradient(typename V::reg g, typename V::reg x) {
    if constexpr (__is_same(A, Relu))
        return V::if_positive(x, g);
    else
        return V::mul(g, A::template slope<V>(x).derivative);
}
