// Linear layers with fewer bits: dot products along the depth, each weight read once in its own
// layout for a few rows at a time.
//
// P: `reg`: sums of a group, of which `add` adds the products of one group: add(sums, weight,
//     x, x_group, scale of the weight); `bytes` of a weight's group; zero(), sum(reg) -> float

template <class P, int columns, int rows>
inline __attribute__((always_inline)) void bits_tile(const BitsPiece& piece, int64_t column,
                                                     int64_t row, float* sums, int64_t stride) {
    const auto* weight = static_cast<const uint8_t*>(piece.weight);
    const int64_t bytes = piece.groups * P::bytes;
    const uint8_t* w[columns];
    const float* scales[columns];
    typename P::reg sum[columns][rows];
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
        w[c] = weight + (column + c) * bytes;
        scales[c] = piece.scales + (column + c) * piece.groups;
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) sum[c][r] = P::zero();
    }
    // The next columns' weights; the last ones' own again, as an address must exist.
    const int64_t ahead = column + 2 * columns <= piece.end ? columns * bytes : 0;
    for (int64_t g = 0; g < piece.groups; ++g) {
#pragma GCC unroll 4
        for (int c = 0; c < columns; ++c) {
            const auto group = P::load(w[c] + g * P::bytes);
            __builtin_prefetch(w[c] + ahead + g * P::bytes);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
                const int8_t* x = piece.x + (row + r) * piece.x_stride + g * bits_group;
                sum[c][r] = P::add(sum[c][r], group, x,
                                   piece.x_groups[(row + r) * piece.groups + g], scales[c][g]);
            }
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
        for (int c = 0; c < columns; ++c) sums[r * stride + c] = P::sum(sum[c][r]);
    }
}

template <class P, int columns>
void bits_columns_of(const BitsPiece& piece, int64_t column, int64_t first, int64_t count,
                     float* sums, int64_t stride) {
    int64_t r = 0;
    for (; r + P::rows <= count; r += P::rows)
        bits_tile<P, columns, P::rows>(piece, column, first + r, sums + r * stride, stride);
    for (; r + 2 <= count; r += 2)
        bits_tile<P, columns, 2>(piece, column, first + r, sums + r * stride, stride);
    for (; r < count; ++r)
        bits_tile<P, columns, 1>(piece, column, first + r, sums + r * stride, stride);
}

template <class V, class T>
void finish_bits(const BitsPiece& piece, const float* sums, int64_t first, int64_t rows, int64_t at,
                 int64_t count) {
    LinearPiece last{};
    last.factors[0].bias = piece.bias;
    last.finish = Finish::none;
    T* const result = static_cast<T*>(piece.result) + at;
    for (int64_t r = 0; r < rows; ++r)
        finish_sums<V>(last, at, sums + r * bits_columns, nullptr,
                       result + (first + r) * piece.result_stride, count);
}

template <class V, class T, class P>
void bits_few(const BitsPiece& piece) {
    float* const sums = static_cast<float*>(piece.scratch);
    for (int64_t at = piece.begin; at < piece.end; at += bits_columns) {
        const int64_t left = piece.end - at, count = left < bits_columns ? left : bits_columns;
        for (int64_t first = 0; first < piece.row_count; first += bits_rows) {
            const int64_t below = piece.row_count - first,
                          rows = below < bits_rows ? below : bits_rows;
            int64_t c = 0;
            for (; c + 4 <= count; c += 4)
                bits_columns_of<P, 4>(piece, at + c, first, rows, sums + c, bits_columns);
            for (; c < count; ++c)
                bits_columns_of<P, 1>(piece, at + c, first, rows, sums + c, bits_columns);
            finish_bits<V, T>(piece, sums, first, rows, at, count);
        }
    }
}

// Any CPU.
template <Bits kind>
struct PlainBits {
    using reg = float;
    static constexpr int64_t bytes = kind == Bits::int8 ? bits_group : bits_group / 2;
    static constexpr int rows = 2;

    static float zero() { return 0; }
    static const uint8_t* load(const uint8_t* from) { return from; }
    static float add(float sum, const uint8_t* weight, const int8_t* x, ActivationGroup group,
                     float scale) {
        int32_t products = 0;
        if constexpr (kind == Bits::int8) {
            for (int64_t i = 0; i < bits_group; ++i)
                products += static_cast<int8_t>(weight[i]) * x[i];
        } else {
            constexpr int64_t half = bits_group / 2;
            for (int64_t i = 0; i < half; ++i)
                products += ((weight[i] & 15) - 8) * x[i] + ((weight[i] >> 4) - 8) * x[half + i];
        }
        return sum + static_cast<float>(products) * (group.scale * scale);
    }
    static float sum(float value) { return value; }
};
