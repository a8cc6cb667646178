// Linear layers of bfloat16 by AMX. The weight is the first factor, as it lies in memory; x is the
// second: its rows are transposed once for all columns (LinearPiece::tiles). So sums are those of a
// column in each row of a tile, and are transposed before they are finished.

constexpr int64_t tile_depth = tile_row_bytes / 2;

inline int64_t tiles_along(int64_t depth) {
    return (depth + tile_depth - 1) / tile_depth;
}

// 16 rows of x, or fewer: the tiles along its depth.
inline void pack_row_tiles(const void* const* rows, int64_t count, int64_t depth, void* to) {
    auto* tile = static_cast<int32_t*>(to);
    for (int64_t k = 0; k < depth; k += tile_depth, tile += tile_bytes / 4) {
        const int64_t left = depth - k;
        __m512i block[16];
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) {
            const auto* from = static_cast<const BFloat16*>(rows[r < count ? r : 0]) + k;
            block[r] = r >= count           ? _mm512_setzero_si512()
                       : left >= tile_depth ? _mm512_loadu_si512(from)
                                            : load_some(from, left);
        }
        transpose(block);
#pragma GCC unroll 16
        for (int g = 0; g < 16; ++g) _mm512_store_si512(tile + g * 16, block[g]);
    }
}

// Tiles of the weight: where they lie or, at its edges, copies with zeros around.
struct WeightTiles {
    const BFloat16* weight;
    int64_t stride, columns, depth;  // nothing is read beyond these
    char* copy;                      // of one tile

    void copy_tile(int64_t column, int64_t k) const {
        const int64_t left = depth - k;
        for (int64_t c = 0; c < tile_rows; ++c) {
            const BFloat16* from = weight + (column + c) * stride + k;
            const __m512i row = column + c >= columns ? _mm512_setzero_si512()
                                : left >= tile_depth  ? _mm512_loadu_si512(from)
                                                      : load_some(from, left);
            _mm512_store_si512(copy + c * tile_row_bytes, row);
        }
    }
    template <int to>
    void load(int64_t column, int64_t k) const {
        if (column + tile_rows <= columns && k + tile_depth <= depth) {
            load_tile<to>(weight + column * stride + k, 2 * stride);
        } else {
            copy_tile(column, k);
            load_tile<to>(copy, tile_row_bytes);
        }
    }
    // So that a tile is on its way when it is needed.
    void fetch(int64_t column, int64_t k) const {
        if (column + tile_rows > columns) return;
        for (int64_t c = 0; c < tile_rows; ++c)
            __builtin_prefetch(weight + (column + c) * stride + k, 0, 2);
    }
};

template <int count, class F>
inline __attribute__((always_inline)) void for_each_tile(F what) {
    [&]<int... i>(std::integer_sequence<int, i...>) {
        (what(std::integral_constant<int, i>()), ...);
    }(std::make_integer_sequence<int, count>());
}

// Tiles 0 to 3 are sums; of x: from 4 on, of the weight: 6 and 7.
constexpr int x_tile = 4, weight_tile = 6;

// The products of a tile of the weight with those of x.
template <int row_tiles, int column>
inline void add_column() {
    for_each_tile<row_tiles>([](auto r) {
        add_pairs_of_tiles<column * row_tiles + r, weight_tile + column % 2, x_tile + r>();
    });
}

// Sums of `row_tiles` x 16 rows and `column_tiles` x 16 columns, which fit the tiles.
template <int row_tiles, int column_tiles>
void sum_tiles(const char* x, int64_t k_tiles, const WeightTiles& weight, int64_t column,
               bool fetches_next, float* sums) {
    for_each_tile<row_tiles * column_tiles>([](auto i) { zero_tile<i>(); });
    for (int64_t t = 0; t < k_tiles; ++t) {
        for_each_tile<row_tiles>([&](auto r) {
            load_tile<x_tile + r>(x + (r * k_tiles + t) * tile_bytes, tile_row_bytes);
        });
        for_each_tile<column_tiles>([&](auto c) {
            const int64_t at = column + c * tile_rows, k = t * tile_depth;
            weight.load<weight_tile + c % 2>(at, k);
            if (fetches_next) weight.fetch(at + column_tiles * tile_rows, k);
            add_column<row_tiles, c>();
        });
    }
    for_each_tile<row_tiles * column_tiles>(
        [&](auto i) { store_tile<i>(sums + i * 256, tile_row_bytes); });
}

// A tile of sums, whose rows are columns of the result, becomes 16 parts of rows.
inline void transpose_sums(const float* tile, float* rows, int64_t stride) {
    __m512i all[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) all[i] = _mm512_load_si512(tile + i * 16);
    transpose(all);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_store_si512(rows + i * stride, all[i]);
}

// How much of x is read again and again, from the second cache.
constexpr int64_t cached_x_bytes = 512 * 1024;
constexpr int64_t most_column_tiles = 4;

template <class V>
class TiledLayer {
public:
    explicit TiledLayer(const LinearPiece& piece)
        : piece_(piece),
          factors_(factor_count(piece)),
          k_tiles_(tiles_along(piece.depth)),
          copy_(static_cast<char*>(piece.scratch)),
          rows_(reinterpret_cast<float*>(copy_ + tile_bytes)),
          sums_(rows_ + 2 * most_column_tiles * 256) {}

    void run() {
        const TilesInUse tiles;
        const int64_t row_tiles = (piece_.row_count + tile_rows - 1) / tile_rows;
        const int64_t cached = cached_x_bytes / (k_tiles_ * tile_bytes) / 2 * 2;
        const int64_t at_once = cached < 2 ? 2 : cached;
        for (int64_t tile = 0; tile < row_tiles; tile += at_once) {
            const int64_t left = row_tiles - tile;
            if (left == 1)
                columns<most_column_tiles>(tile, 1);
            else
                columns<most_column_tiles / 2>(tile, left < at_once ? left : at_once);
        }
    }

    // A tile at an edge; rows that are finished, and sums, of two factors.
    static constexpr int64_t scratch_bytes = tile_bytes + 4 * most_column_tiles * tile_bytes;

private:
    const char* x_of(int64_t row_tile) const {
        return static_cast<const char*>(piece_.tiles) + row_tile * k_tiles_ * tile_bytes;
    }
    WeightTiles weight_of(int factor) const {
        const auto& one = piece_.factors[factor];
        return {static_cast<const BFloat16*>(one.weight), one.stride, piece_.end, piece_.depth,
                copy_};
    }

    // Groups of columns, of which the last may have fewer.
    template <int column_tiles>
    void columns(int64_t row_tile, int64_t count) {
        int64_t column = piece_.begin;
        for (; column + column_tiles * tile_rows <= piece_.end; column += column_tiles * tile_rows)
            rows_of_columns<column_tiles>(row_tile, count, column);
        for (; column < piece_.end; column += tile_rows)
            rows_of_columns<1>(row_tile, count, column);
    }

    // The first rows ask the memory for the next columns; the others find these in the cache.
    template <int column_tiles>
    void rows_of_columns(int64_t row_tile, int64_t count, int64_t column) {
        int64_t r = 0;
        if constexpr (column_tiles <= 2)
            for (; r + 2 <= count; r += 2) block<2, column_tiles>(row_tile + r, column, r == 0);
        if (r < count) block<1, column_tiles>(row_tile + r, column, r == 0);
    }

    template <int row_tiles, int column_tiles>
    void block(int64_t row_tile, int64_t column, bool fetches_next) {
        constexpr int64_t tiles = row_tiles * column_tiles;
        for (int f = 0; f < factors_; ++f)
            sum_tiles<row_tiles, column_tiles>(x_of(row_tile), k_tiles_, weight_of(f), column,
                                               fetches_next, sums_ + f * tiles * 256);
        for (int64_t r = 0; r < row_tiles; ++r)
            finish(row_tile + r, column, column_tiles,
                   [&](int f, int64_t c) { return sums_ + (f * tiles + c * row_tiles + r) * 256; });
    }

    template <class Sums>
    void finish(int64_t row_tile, int64_t column, int64_t column_tiles, Sums sums_at) {
        constexpr int64_t row_stride = most_column_tiles * 16, factor_rows = tile_rows * row_stride;
        for (int f = 0; f < factors_; ++f)
            for (int64_t c = 0; c < column_tiles; ++c)
                transpose_sums(sums_at(f, c), rows_ + f * factor_rows + c * 16, row_stride);
        const int64_t left = piece_.end - column;
        const int64_t columns = left < column_tiles * 16 ? left : column_tiles * 16;
        const int64_t first = row_tile * tile_rows, below = piece_.row_count - first;
        auto* const result = static_cast<BFloat16*>(piece_.result) + column;
        finish_sums<V>(
            piece_, column,
            {rows_, rows_ + factor_rows, below < tile_rows ? below : tile_rows, row_stride},
            result + first * piece_.result_stride, columns);
    }

    const LinearPiece& piece_;
    int factors_;
    int64_t k_tiles_;
    char* copy_;
    float *rows_, *sums_;
};

template <class V>
void linear_tiles(const LinearPiece& piece) {
    TiledLayer<V>(piece).run();
}
