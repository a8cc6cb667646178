// Linear layers of bfloat16 by AMX whose weight lies in panels (operators/linear_prepack.h). Rows
// of x are the first factor, a panel is the second one, both as they lie; so sums lie as results
// do.

// A pair of a panel's tiles is 16 groups and all columns, dense in memory.
constexpr int64_t panel_row_bytes = panel_columns * 4;
constexpr int64_t panel_pair_bytes = 16 * panel_row_bytes;

// Some pairs of tiles, one after the other, and what rows of x have for the first of them.
struct TilePairs {
    const char* panel;
    int64_t count;
    const char* x;
    int64_t x_stride;  // in bytes

    const char* rows(int64_t first, int64_t pair) const {
        return x + first * x_stride + pair * tile_row_bytes;
    }
    const char* columns(int64_t pair) const { return panel + pair * panel_pair_bytes; }
};

// Tiles 0 to 3 are sums, 4 and 5 of x, 6 and 7 of the panel.

// Two tiles of rows, which share what is loaded of the panel.
inline void multiply_two(const TilePairs& pairs, int64_t upper, int64_t lower, NextLines next) {
    for (int64_t i = 0; i < pairs.count; ++i) {
        next.ask();
        load_tile<6>(pairs.columns(i), panel_row_bytes);
        next.ask();
        load_tile<4>(pairs.rows(upper, i), pairs.x_stride);
        add_pairs_of_tiles<0, 4, 6>();
        next.ask();
        load_tile<7>(pairs.columns(i) + tile_row_bytes, panel_row_bytes);
        add_pairs_of_tiles<1, 4, 7>();
        next.ask();
        load_tile<5>(pairs.rows(lower, i), pairs.x_stride);
        add_pairs_of_tiles<2, 5, 6>();
        add_pairs_of_tiles<3, 5, 7>();
    }
}

// One tile of rows has its sums twice, so that a product need not wait for the one before.
template <int sums>
inline void multiply_pair(const TilePairs& pairs, int64_t i, NextLines& next) {
    constexpr int x_tile_of = 4 + sums / 2;
    next.ask();
    load_tile<x_tile_of>(pairs.rows(0, i), pairs.x_stride);
    load_tile<6>(pairs.columns(i), panel_row_bytes);
    next.ask();
    add_pairs_of_tiles<sums, x_tile_of, 6>();
    load_tile<7>(pairs.columns(i) + tile_row_bytes, panel_row_bytes);
    add_pairs_of_tiles<sums + 1, x_tile_of, 7>();
}
inline void multiply_one(const TilePairs& pairs, NextLines next) {
    int64_t i = 0;
    for (; i + 2 <= pairs.count; i += 2) {
        multiply_pair<0>(pairs, i, next);
        multiply_pair<2>(pairs, i + 1, next);
    }
    if (i < pairs.count) multiply_pair<0>(pairs, i, next);
}

// The sums of two tiles of rows, or of one twice.
constexpr int64_t block_rows = 2 * tile_rows, block_sums = block_rows * panel_columns;
template <bool loads>
inline void move_sums(float* block) {
    for_each_tile<4>([&](auto i) {
        float* const at = block + i / 2 * (block_sums / 2) + i % 2 * 16;
        if constexpr (loads)
            load_tile<i>(at, panel_row_bytes);
        else
            store_tile<i>(at, panel_row_bytes);
    });
}

// Pairs that the first cache keeps for all rows, and that are asked for that much ahead.
constexpr int64_t pairs_at_once = 8;
// Rows whose x the second cache keeps for all columns.
constexpr int64_t panel_x_bytes = 1024 * 1024, most_panel_rows = 512;

// Some rows of a piece.
template <class V>
class PanelLayer {
public:
    PanelLayer(const LinearPiece& piece, int64_t first, int64_t count)
        : piece_(piece),
          first_(first),
          count_(count),
          blocks_((count + block_rows - 1) / block_rows),
          pairs_(piece.depth / tile_depth),
          sums_(static_cast<float*>(piece.scratch)) {}

    void compute() {
        for (int64_t column = piece_.begin; column < piece_.end; column += panel_columns) {
            for (int f = 0; f < factor_count(piece_); ++f) multiply(f, column);
            for (int64_t b = 0; b < blocks_; ++b) finish(b, column);
        }
    }

    static constexpr int64_t scratch_bytes = 2 * most_panel_rows * panel_row_bytes;

private:
    const char* panel(int factor, int64_t column) const {
        return static_cast<const char*>(piece_.factors[factor].weight) +
               column * pairs_ * tile_row_bytes;
    }
    // What is multiplied after it, or would be.
    const char* behind(int factor, int64_t column) const {
        return factor + 1 < factor_count(piece_) ? panel(factor + 1, column)
                                                 : panel(0, column + panel_columns);
    }
    const char* row(int64_t r) const { return static_cast<const char*>(piece_.rows[first_ + r]); }
    float* sums(int factor, int64_t block) const {
        return sums_ + (factor * blocks_ + block) * block_sums;
    }
    // The tiles of the last block end with the last row, and may have rows of those before.
    int64_t upper(int64_t block) const {
        const int64_t last = count_ > block_rows ? count_ - block_rows : 0;
        return block * block_rows < last ? block * block_rows : last;
    }
    int64_t lower(int64_t block) const {
        const int64_t at = upper(block) + tile_rows;
        return at + tile_rows <= count_ ? at : count_ - tile_rows;
    }

    void multiply(int factor, int64_t column) const {
        const char* const begin = panel(factor, column);
        for (int64_t at = 0; at < pairs_; at += pairs_at_once) {
            const int64_t left = pairs_ - at, count = left < pairs_at_once ? left : pairs_at_once;
            const TilePairs some{begin + at * panel_pair_bytes, count, row(0) + at * tile_row_bytes,
                                 x_stride()};
            const char* const next = left > count ? some.columns(count) : behind(factor, column);
            for (int64_t b = 0; b < blocks_; ++b)
                multiply_block(some, b,
                               NextLines(next, count * panel_pair_bytes, b, blocks_,
                                         count * (count_ > tile_rows ? 4 : 2)),
                               sums(factor, b), at == 0, left == count);
        }
    }
    int64_t x_stride() const { return count_ > 1 ? row(1) - row(0) : tile_row_bytes; }
    // The sums of the only block stay where they are.
    void multiply_block(const TilePairs& pairs, int64_t block, const NextLines& next, float* sums,
                        bool is_first, bool is_last) const {
        if (is_first)
            for_each_tile<4>([](auto i) { zero_tile<i>(); });
        else if (blocks_ > 1)
            move_sums<true>(sums);
        if (count_ > tile_rows)
            multiply_two(pairs, upper(block), lower(block), next);
        else
            multiply_one(pairs, next);
        if (is_last || blocks_ > 1) move_sums<false>(sums);
    }

    void finish(int64_t block, int64_t column) const {
        float *const first = sums(0, block), *const second = sums(1, block);
        if (count_ > tile_rows) {
            finish_tile(first + block_sums / 2, second + block_sums / 2, lower(block), column);
        } else {
            add_halves(first);
            if (factor_count(piece_) > 1) add_halves(second);
        }
        finish_tile(first, second, upper(block), column);
    }
    void add_halves(float* block) const {
        for (int64_t i = 0; i < count_ * panel_columns; i += 16)
            _mm512_store_ps(block + i, _mm512_add_ps(_mm512_load_ps(block + i),
                                                     _mm512_load_ps(block + block_sums / 2 + i)));
    }
    void finish_tile(const float* first, const float* second, int64_t row, int64_t column) const {
        auto* const result = static_cast<BFloat16*>(piece_.result) + column;
        finish_sums<V>(piece_, column,
                       {first, second, count_ < tile_rows ? count_ : tile_rows, panel_columns},
                       result + (first_ + row) * piece_.result_stride, panel_columns);
    }

    const LinearPiece& piece_;
    int64_t first_, count_, blocks_, pairs_;
    float* sums_;
};

// Rows of x are even (operators/row_tiles.h).
template <class V>
void linear_panel_tiles(const LinearPiece& piece) {
    const int64_t fitting = panel_x_bytes / (2 * piece.depth) / block_rows * block_rows;
    const int64_t most = fitting < block_rows        ? block_rows
                         : fitting < most_panel_rows ? fitting
                                                     : most_panel_rows;
    const TilesInUse tiles(piece.row_count < tile_rows ? piece.row_count : tile_rows);
    for (int64_t first = 0; first < piece.row_count; first += most) {
        const int64_t left = piece.row_count - first;
        // A whole block, if there are as many rows at all: how a row's products are added up must
        // not depend on how rows are divided.
        const int64_t begin = left < block_rows && first > 0 ? piece.row_count - block_rows : first;
        PanelLayer<V>(piece, begin, left < most ? piece.row_count - begin : most).compute();
    }
}
