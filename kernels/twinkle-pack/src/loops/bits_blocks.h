// Linear layers with fewer bits: a tile of rows and blocks of 16 columns at a time.
//
// P: `ints` and `floats`, 16 sums of integers and of floats; `rows`, `blocks`: of a tile, whose
// sums
//     must fit the registers; `few_rows`, `few_blocks`: of one for as many rows at most; zero(),
//     begin(int32_t) -> ints, add_group<rows, blocks>(weights, x, ints, ahead), load(const float*)
//     -> floats, add(floats, ints, scales of the columns, scale of the row) -> floats,
//     store(float*, floats). add_group asks the memory for what lies `ahead` bytes behind the
//     weights, if that is not 0.

// Weights of the next tile are asked for while a tile is computed, if they are not far behind.
// The memory foresees long rows by itself, as long as the products with a few rows of x do not hold
// it up; with more rows, weights are asked for that come soon.
constexpr int64_t most_bits_ahead = int64_t{128} << 10, less_bits_ahead = int64_t{16} << 10;

template <Bits kind>
inline BitsPiece::Weight bits_block_at(const BitsPiece& piece, int64_t block) {
    if (block == piece.columns / bits_block) return piece.last;
    return {piece.weight.values + block * piece.groups * bits_group_bytes(kind),
            piece.weight.scales + block * piece.groups * bits_block};
}

template <Bits kind, class P, int rows, int blocks>
inline __attribute__((always_inline)) void bits_tile(const BitsPiece& piece, int64_t row,
                                                     const BitsPiece::Weight* from, int64_t ahead,
                                                     float* sums) {
    typename P::floats sum[rows][blocks];
    const uint8_t* w[blocks];
    const int8_t* x[rows];
    const ActivationGroup* x_groups[rows];
#pragma GCC unroll 8
    for (int b = 0; b < blocks; ++b) w[b] = from[b].values;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        x[r] = piece.x + (row + r) * piece.x_stride;
        x_groups[r] = piece.x_groups + (row + r) * piece.groups;
#pragma GCC unroll 8
        for (int b = 0; b < blocks; ++b) sum[r][b] = P::zero();
    }
    for (int64_t g = 0; g < piece.groups; ++g) {
        typename P::ints products[rows][blocks];
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const auto begin = P::begin(-bits_offset(kind) * x_groups[r][g].sum);
#pragma GCC unroll 8
            for (int b = 0; b < blocks; ++b) products[r][b] = begin;
        }
        P::template add_group<rows, blocks>(w, x, products, ahead);
#pragma GCC unroll 8
        for (int b = 0; b < blocks; ++b) {
            w[b] += bits_group_bytes(kind);
            const float* const own = from[b].scales + g * bits_block;
            if (ahead) __builtin_prefetch(own + ahead / bits_group_bytes(kind) * bits_block, 0, 2);
            const auto scales = P::load(own);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
                sum[r][b] = P::add(sum[r][b], products[r][b], scales, x_groups[r][g].scale);
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) x[r] += bits_group;
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int b = 0; b < blocks; ++b) P::store(sums + (r * blocks + b) * bits_block, sum[r][b]);
    }
}

// 0 where nothing of the piece lies there, and where rows before these have asked.
template <Bits kind, int blocks>
int64_t bits_ahead(const BitsPiece& piece, int64_t row, int64_t block) {
    const int64_t next = blocks * piece.groups * bits_group_bytes(kind);
    const int64_t left =
        (piece.columns / bits_block - block) * piece.groups * bits_group_bytes(kind);
    if (row > 0 || left < 2 * next) return 0;
    return next <= most_bits_ahead ? next : piece.row_count > 3 ? less_bits_ahead : 0;
}

template <Bits kind, class V, class T, class P, int rows, int blocks>
void bits_rows(const BitsPiece& piece, int64_t row, int64_t block) {
    BitsPiece::Weight from[blocks];
    for (int b = 0; b < blocks; ++b) from[b] = bits_block_at<kind>(piece, block + b);
    alignas(64) float sums[rows * blocks * bits_block];
    bits_tile<kind, P, rows, blocks>(piece, row, from, bits_ahead<kind, blocks>(piece, row, block),
                                     sums);
    LinearPiece last{};
    last.factors[0].bias = piece.bias;
    last.finish = Finish::none;
    last.result_stride = piece.result_stride;
    const int64_t at = block * bits_block, left = piece.columns - at;
    const int64_t count = left < blocks * bits_block ? left : blocks * bits_block;
    T* const result = static_cast<T*>(piece.result) + at;
    finish_sums<V>(last, at, {sums, nullptr, rows, blocks * bits_block},
                   result + row * piece.result_stride, count);
}

// The largest tile that has no more rows than there are.
template <Bits kind, class V, class T, class P, int rows, int blocks>
int64_t bits_rows_of(const BitsPiece& piece, int64_t row, int64_t wanted, int64_t block) {
    if (wanted >= rows) {
        bits_rows<kind, V, T, P, rows, blocks>(piece, row, block);
        return rows;
    }
    if constexpr (rows > 1)
        return bits_rows_of<kind, V, T, P, rows - 1, blocks>(piece, row, wanted, block);
    return 0;
}

// Rows that the second cache holds beside a few blocks.
constexpr int64_t bits_rows_at_once = 256;

template <Bits kind, class V, class T, class P, int rows, int blocks>
void bits_tiles(const BitsPiece& piece) {
    for (int64_t first = 0; first < piece.row_count; first += bits_rows_at_once) {
        const int64_t below = piece.row_count - first,
                      end = first + (below < bits_rows_at_once ? below : bits_rows_at_once);
        int64_t block = piece.begin;
        for (; block + blocks <= piece.end; block += blocks)
            for (int64_t row = first; row < end;)
                row += bits_rows_of<kind, V, T, P, rows, blocks>(piece, row, end - row, block);
        for (; block < piece.end; ++block)
            for (int64_t row = first; row < end;)
                row += bits_rows_of<kind, V, T, P, rows, 1>(piece, row, end - row, block);
    }
}

template <class V, class T, Bits kind, class P>
void bits_linear(const BitsPiece& piece) {
    piece.row_count <= P::few_rows ? bits_tiles<kind, V, T, P, P::few_rows, P::few_blocks>(piece)
                                   : bits_tiles<kind, V, T, P, P::rows, P::blocks>(piece);
}

// Any CPU.
template <Bits kind>
struct PlainBits {
    struct ints {
        int32_t of[bits_block];
    };
    struct floats {
        float of[bits_block];
    };
    static constexpr int rows = 2, blocks = 1, few_rows = rows, few_blocks = blocks;

    static floats zero() { return {}; }
    static ints begin(int32_t value) {
        ints all;
        for (int32_t& one : all.of) one = value;
        return all;
    }
    static floats load(const float* from) {
        floats all;
        __builtin_memcpy(&all, from, sizeof all);
        return all;
    }
    static void store(float* to, const floats& all) { __builtin_memcpy(to, &all, sizeof all); }
    static floats add(floats sum, const ints& products, const floats& scales, float scale) {
        for (int64_t c = 0; c < bits_block; ++c)
            sum.of[c] += static_cast<float>(products.of[c]) * (scales.of[c] * scale);
        return sum;
    }
    static void add_four(ints& sum, const uint8_t* w, int shift, int mask, const int8_t* x) {
        for (int64_t c = 0; c < bits_block; ++c)
            for (int64_t i = 0; i < 4; ++i) sum.of[c] += ((w[4 * c + i] >> shift) & mask) * x[i];
    }
    template <int rows, int blocks>
    static void add_group(const uint8_t* const* w, const int8_t* const* x,
                          ints (&sum)[rows][blocks], int64_t) {
        constexpr int64_t step = 4 * bits_block;
        for (int r = 0; r < rows; ++r)
            for (int b = 0; b < blocks; ++b)
                for (int64_t k = 0; k < bits_group_bytes(kind) / step; ++k)
                    if constexpr (kind == Bits::int8) {
                        add_four(sum[r][b], w[b] + k * step, 0, 255, x[r] + 4 * k);
                    } else {
                        add_four(sum[r][b], w[b] + k * step, 0, 15, x[r] + 4 * k);
                        add_four(sum[r][b], w[b] + k * step, 4, 15, x[r] + bits_group / 2 + 4 * k);
                    }
    }
};
