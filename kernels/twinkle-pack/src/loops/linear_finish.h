// The last step of a linear layer: sums in float32, then bias, activation and gate, rounded once.

template <class V, class T>
inline typename V::reg with_bias(const float* sums, const T* bias, int64_t i, int64_t n) {
    const auto value = n < V::width ? load_tail<V>(sums + i, n) : V::load(sums + i);
    if (!bias) return value;
    return V::add(value, n < V::width ? load_tail<V>(bias + i, n) : V::load(bias + i));
}

template <class V, class T, class F>
inline void finish_row(T* result, int64_t n, F value) {
    int64_t i = 0;
    for (; i + V::width <= n; i += V::width) V::store(result + i, value(i, V::width));
    if (i < n) store_tail<V>(result + i, value(i, n - i), n - i);
}

// Sums of rows that are `stride` apart; `second` are those that the first ones gate.
struct RowSums {
    const float *first, *second;
    int64_t rows, stride;
};

// The part of some rows that begins at column `at`, `n` wide; `result` is where it begins in the
// first of them.
template <class V, class T>
void finish_sums(const LinearPiece& piece, int64_t at, const RowSums& sums, T* result, int64_t n) {
    const T* biases[2];
    for (int i = 0; i < 2; ++i) {
        const T* bias = static_cast<const T*>(piece.factors[i].bias);
        biases[i] = bias ? bias + at : nullptr;
    }
    const auto each_row = [&](auto value) {
        for (int64_t r = 0; r < sums.rows; ++r) {
            const float* const row = sums.first + r * sums.stride;
            const auto first_of = [&](int64_t i, int64_t left) {
                return with_bias<V>(row, biases[0], i, left);
            };
            finish_row<V>(result + r * piece.result_stride, n, [&](int64_t i, int64_t left) {
                return value(r, i, left, first_of(i, left));
            });
        }
    };
    using Reg = typename V::reg;
    const auto plain = [](int64_t, int64_t, int64_t, Reg first) { return first; };
    const auto activated = [&]<class A>(A*) {
        each_row([](int64_t, int64_t, int64_t, Reg first) { return A::template value<V>(first); });
    };
    const auto gated = [&]<class A>(A*) {
        each_row([&](int64_t r, int64_t i, int64_t left, Reg first) {
            return V::mul(A::template value<V>(first),
                          with_bias<V>(sums.second + r * sums.stride, biases[1], i, left));
        });
    };
    switch (piece.finish) {
        case Finish::none: return each_row(plain);
        case Finish::silu: return activated(static_cast<Silu*>(nullptr));
        case Finish::gelu: return activated(static_cast<Gelu*>(nullptr));
        case Finish::gelu_tanh: return activated(static_cast<GeluTanh*>(nullptr));
        case Finish::relu: return activated(static_cast<Relu*>(nullptr));
        case Finish::silu_mul: return gated(static_cast<Silu*>(nullptr));
        case Finish::gelu_mul: return gated(static_cast<Gelu*>(nullptr));
        case Finish::gelu_tanh_mul: return gated(static_cast<GeluTanh*>(nullptr));
    }
}

// Finishes a block of sums: `factors` of them behind each other, each [rows, columns].
template <class V, class T>
void finish_block(const LinearPiece& piece, const float* sums, int64_t first_row, int64_t rows,
                  int64_t at, int64_t columns) {
    T* const result = static_cast<T*>(piece.result) + at;
    finish_sums<V>(piece, at, {sums, sums + rows * columns, rows, columns},
                   result + first_row * piece.result_stride, columns);
}

inline int factor_count(const LinearPiece& piece) {
    return piece.finish >= Finish::silu_mul ? 2 : 1;
}
