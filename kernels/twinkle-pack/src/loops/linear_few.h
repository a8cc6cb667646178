// Linear layers of few rows: dot products along the depth, which read each weight once, in its own
// layout, while the memory system fetches the next ones.
//
// D: `T`, `reg` of float32 sums, `in`, `step` (elements of an `in`), `most_rows`, and static
//     load(const T*), load_tail(const T*, n), dot(in, in, reg) -> sums, zero(),
//     add_sums<n>(const reg*, float*): each register's sum, added to n floats.

template <int number>
struct Constant {};

// The weights that come after these. The tiles of a block's rows take turns in asking the memory
// for them, so that it has work all the time.
template <class T>
struct NextColumns {
    const T* weight;
    int64_t first, every;  // elements along the depth: asked for at first, first + every, …
};

// The sums of rows x columns products.
template <class D, int rows, int columns>
__attribute__((noinline)) void dot_tile(const typename D::T* x, int64_t x_stride,
                                        const typename D::T* weight, int64_t weight_stride,
                                        int64_t depth, const NextColumns<typename D::T>& next,
                                        float* sums, int64_t sums_stride) {
    typename D::reg sum[rows][columns];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < columns; ++c) sum[r][c] = D::zero();
    int64_t k = 0, asked = next.first;
    for (; k + D::step <= depth; k += D::step) {
        if (k == asked) {
#pragma GCC unroll 8
            for (int c = 0; c < columns; ++c)
                __builtin_prefetch(next.weight + c * weight_stride + k, 0, 2);
            asked += next.every;
        }
        typename D::in w[columns];
#pragma GCC unroll 8
        for (int c = 0; c < columns; ++c) w[c] = D::load(weight + c * weight_stride + k);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const auto value = D::load(x + r * x_stride + k);
#pragma GCC unroll 8
            for (int c = 0; c < columns; ++c) sum[r][c] = D::dot(value, w[c], sum[r][c]);
        }
    }
    if (k < depth)
        for (int c = 0; c < columns; ++c) {
            const auto w = D::load_tail(weight + c * weight_stride + k, depth - k);
            for (int r = 0; r < rows; ++r)
                sum[r][c] = D::dot(D::load(x + r * x_stride + k), w, sum[r][c]);
        }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) D::template add_sums<columns>(sum[r], sums + r * sums_stride);
}

// The rows of x, copied with a stride that spreads them over the cache's sets.
template <class T>
struct CopiedRows {
    T* data;
    int64_t count, stride;
};

// All rows against `columns` rows of the weight.
template <class D, int columns>
void dot_rows(const CopiedRows<typename D::T>& x, const typename D::T* weight, int64_t stride,
              int64_t depth, const typename D::T* next, float* sums, int64_t sums_stride) {
    int64_t row = 0;
    const int64_t all = (x.count + D::most_rows - 1) / D::most_rows;
    NextColumns<typename D::T> turn{next, 0, all * D::step};
    const auto tile = [&]<int rows>(Constant<rows>) {
        dot_tile<D, rows, columns>(x.data + row * x.stride, x.stride, weight, stride, depth, turn,
                                   sums + row * sums_stride, sums_stride);
        row += rows;
        turn.first += D::step;
    };
    for (int64_t tiles = all; tiles > 0; --tiles) {
        const int64_t rows = (x.count - row + tiles - 1) / tiles;
        if constexpr (D::most_rows >= 6) {
            switch (rows) {
                case 6: tile(Constant<6>()); continue;
                case 5: tile(Constant<5>()); continue;
                case 4: tile(Constant<4>()); continue;
                case 3: tile(Constant<3>()); continue;
                default: break;
            }
        }
        if (rows == 2)
            tile(Constant<2>());
        else
            tile(Constant<1>());
    }
}

// Adds the products with columns [at, at + count) to their sums.
template <class D>
void dot_columns(const LinearPiece& piece, const LinearPiece::Factor& factor,
                 const CopiedRows<typename D::T>& x, int64_t from, int64_t depth, int64_t at,
                 int64_t count, float* sums) {
    using T = typename D::T;
    const T* const weight = static_cast<const T*>(factor.weight) + from;
    const auto row_of = [&](int64_t column, int64_t block) {
        // Never past the piece's last: its address is only fetched, but must exist.
        const int64_t last = piece.end > block ? piece.end - block : 0;
        return weight + (column < last ? column : last) * factor.stride;
    };
    int64_t c = 0;
    if (x.count == 1)
        for (; c + 8 <= count; c += 8)
            dot_rows<D, 8>(x, row_of(at + c, 8), factor.stride, depth, row_of(at + c + 8, 8),
                           sums + c, count);
    for (; c + 4 <= count; c += 4)
        dot_rows<D, 4>(x, row_of(at + c, 4), factor.stride, depth, row_of(at + c + 4, 4), sums + c,
                       count);
    for (; c < count; ++c)
        dot_rows<D, 1>(x, row_of(at + c, 1), factor.stride, depth, row_of(at + c + 1, 1), sums + c,
                       count);
}

template <class V, class D>
void linear_few(const LinearPiece& piece) {
    using T = typename D::T;
    constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
    const int64_t fitting = few_bytes / static_cast<int64_t>(sizeof(T)) / piece.row_count;
    const int64_t most = fitting / (8 * line) * (8 * line);
    const int64_t block = piece.depth <= most ? piece.depth : most;
    CopiedRows<T> x{static_cast<T*>(piece.scratch), piece.row_count,
                    (block + line - 1) / line * line + line};
    float* const sums = reinterpret_cast<float*>(x.data + x.count * x.stride);
    const int factors = factor_count(piece);
    const auto copy = [&](int64_t from, int64_t depth) {
        for (int64_t r = 0; r < x.count; ++r) {
            T* const to = x.data + r * x.stride;
            __builtin_memcpy(to, static_cast<const T*>(piece.rows[r]) + from,
                             static_cast<size_t>(depth) * sizeof(T));
            for (int64_t k = depth; k < depth + line && k < x.stride; ++k) to[k] = T{};
        }
    };
    if (block == piece.depth) copy(0, block);
    for (int64_t at = piece.begin; at < piece.end; at += few_columns) {
        const int64_t count = piece.end - at < few_columns ? piece.end - at : few_columns;
        for (int64_t i = 0; i < factors * x.count * count; ++i) sums[i] = 0;
        for (int64_t from = 0; from < piece.depth; from += block) {
            const int64_t depth = piece.depth - from < block ? piece.depth - from : block;
            if (block < piece.depth) copy(from, depth);
            for (int f = 0; f < factors; ++f)
                dot_columns<D>(piece, piece.factors[f], x, from, depth, at, count,
                               sums + f * x.count * count);
        }
        finish_block<V, T>(piece, sums, 0, x.count, at, count);
    }
}
