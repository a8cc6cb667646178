// The last step of a convolution: scale, shift, residual and activation of sums in float32, rounded
// once.

struct Unchanged {
    template <class V>
    static typename V::reg value(typename V::reg x) {
        return x;
    }
};

struct Relu6 {
    template <class V>
    static typename V::reg value(typename V::reg x) {
        return V::clamp(x, 0, 6);
    }
};

struct Hardswish {
    template <class V>
    static typename V::reg value(typename V::reg x) {
        const auto gate = V::clamp(V::add(x, V::set1(3)), 0, 6);
        return V::mul(x, V::mul(gate, V::set1(static_cast<typename V::scalar>(1.0 / 6))));
    }
};

// `n` of a vector's elements; all of them are the usual case.
template <class V, class T>
inline __attribute__((always_inline)) typename V::reg load_first(const T* from, int64_t n) {
    return n < V::width ? load_tail<V>(from, n) : V::load(from);
}
template <class V, class T>
inline __attribute__((always_inline)) void store_first(T* to, typename V::reg value, int64_t n) {
    if (n < V::width)
        store_tail<V>(to, value, n);
    else
        V::store(to, value);
}

// What is done to the sums of a channel, read once.
template <class V>
struct ChannelScale {
    typename V::reg scale, shift;

    ChannelScale(const ConvPiece& piece, int64_t channel)
        : scale(V::set1(piece.scale[channel])), shift(V::set1(piece.shift[channel])) {}

    // Of `n` channels, one in each lane.
    static inline __attribute__((always_inline)) ChannelScale of_vector(const ConvPiece& piece,
                                                                        int64_t channel,
                                                                        int64_t n) {
        return {load_first<V>(piece.scale + channel, n), load_first<V>(piece.shift + channel, n)};
    }

private:
    ChannelScale(typename V::reg factor, typename V::reg added) : scale(factor), shift(added) {}
};

// Where a residual is added.
enum class Residual { none, before_activation, after_activation };

inline Residual residual_of(const ConvPiece& piece) {
    return !piece.residual       ? Residual::none
           : piece.residual_last ? Residual::after_activation
                                 : Residual::before_activation;
}

template <class V, class A, Residual residual>
inline __attribute__((always_inline)) typename V::reg finished(const ChannelScale<V>& channel,
                                                               typename V::reg sums,
                                                               typename V::reg added) {
    const auto value = V::fma(sums, channel.scale, channel.shift);
    if constexpr (residual == Residual::none) return A::template value<V>(value);
    if constexpr (residual == Residual::before_activation)
        return A::template value<V>(V::add(value, added));
    return V::add(A::template value<V>(value), added);
}

// `residual`: null for none.
template <class V, class A, class T>
inline __attribute__((always_inline)) typename V::reg finished(const ConvPiece& piece,
                                                               const ChannelScale<V>& channel,
                                                               typename V::reg sums,
                                                               const T* residual, int64_t n) {
    if (!residual) return finished<V, A, Residual::none>(channel, sums, sums);
    const auto added = load_first<V>(residual, n);
    return piece.residual_last ? finished<V, A, Residual::after_activation>(channel, sums, added)
                               : finished<V, A, Residual::before_activation>(channel, sums, added);
}

// Calls f with the activation as a type.
template <class F>
inline void with_activation(ConvFinish finish, F f) {
    switch (finish) {
        case ConvFinish::none: return f(static_cast<Unchanged*>(nullptr));
        case ConvFinish::relu: return f(static_cast<Relu*>(nullptr));
        case ConvFinish::relu6: return f(static_cast<Relu6*>(nullptr));
        case ConvFinish::silu: return f(static_cast<Silu*>(nullptr));
        case ConvFinish::gelu: return f(static_cast<Gelu*>(nullptr));
        case ConvFinish::hardswish: return f(static_cast<Hardswish*>(nullptr));
    }
}
