// Linear layers of many rows: outer products. Panels of the weight are transposed into the cache,
// two vectors wide.
//
// G, beside what outer products need: add_to(float* sums, reg), and
//     pack_columns(int32_t* panel, const T* weight, stride, columns, depth): depth in elements,
//     rounded up to whole groups with zeros.

template <class G>
constexpr int64_t panel_width = 2 * G::lanes;
// The stride of x's rows in groups: not a multiple of a page.
constexpr int64_t row_groups = many_depth + 16;
// Products that are added up one after the other before the sums leave the registers: rounding
// grows with them, and a chain of all of many_depth is less exact than LibTorch's.
constexpr int64_t chain_groups = 128;

// Rows of x, in groups.
struct GroupRows {
    int32_t* data;
    int64_t count, stride;
};

// Adds the products of some rows of x and a panel to sums.
template <class G, int rows, class Next>
__attribute__((noinline)) void outer_tile(const GroupRows& x, const int32_t* panel, int64_t groups,
                                          const Next& next, float* sums, int64_t stride) {
    for (int64_t at = 0; at < groups; at += chain_groups) {
        const int64_t count = groups - at < chain_groups ? groups - at : chain_groups;
        typename G::reg sum[rows][2];
        outer_products<G>(x.data + at, x.stride, panel + at * panel_width<G>, count, next.after(at),
                          sum);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            G::add_to(sums + r * stride, sum[r][0]);
            G::add_to(sums + r * stride + G::lanes, sum[r][1]);
        }
    }
}

template <class G, int rows, class Next>
void outer_tile_of(const GroupRows& x, const int32_t* panel, int64_t groups, const Next& next,
                   float* sums, int64_t stride) {
    if (x.count == rows) return outer_tile<G, rows>(x, panel, groups, next, sums, stride);
    if constexpr (rows > 1) outer_tile_of<G, rows - 1>(x, panel, groups, next, sums, stride);
}

// All rows of a block against one panel, while another one is asked for.
template <class G, class Next>
void outer_rows(const GroupRows& x, const int32_t* panel, int64_t groups, const Next& next,
                float* sums, int64_t stride) {
    const int64_t tiles = (x.count + G::tile_rows - 1) / G::tile_rows;
    int64_t row = 0;
    for (int64_t t = 0; t < tiles; ++t) {
        const int64_t count = (x.count - row + tiles - t - 1) / (tiles - t);
        outer_tile_of<G, G::tile_rows>(GroupRows{x.data + row * x.stride, count, x.stride}, panel,
                                       groups, next.part(t, tiles), sums + row * stride, stride);
        row += count;
    }
}

// Rows [first, first + rows) times columns [at, at + count) of each factor; sums have whole panels.
template <class V, class G>
void outer_block(const LinearPiece& piece, int64_t first, int64_t rows, int64_t at, int64_t count) {
    using T = typename G::T;
    constexpr int64_t wide = panel_width<G>;
    int32_t* const x = static_cast<int32_t*>(piece.scratch);
    int32_t* const panel = x + many_rows * row_groups;
    float* const sums = reinterpret_cast<float*>(panel + many_depth * wide);
    // Rows of sums that are a page apart would share the cache's sets.
    const int64_t width = (count + wide - 1) / wide * wide + 32;
    const int factors = factor_count(piece);
    for (int64_t i = 0; i < factors * rows * width; ++i) sums[i] = 0;
    constexpr int64_t block = many_depth * G::per_group;
    for (int64_t from = 0; from < piece.depth; from += block) {
        const int64_t depth = piece.depth - from < block ? piece.depth - from : block;
        const int64_t groups = (depth + G::per_group - 1) / G::per_group;
        for (int64_t r = 0; r < rows; ++r)
            G::pack_row(x + r * row_groups, static_cast<const T*>(piece.rows[first + r]) + from,
                        depth);
        for (int f = 0; f < factors; ++f) {
            const auto& factor = piece.factors[f];
            const T* const weight = static_cast<const T*>(factor.weight) + from;
            for (int64_t c = 0; c < count; c += wide) {
                const int64_t left = count - c, columns = left < wide ? left : wide;
                const T* const columns_at = weight + (at + c) * factor.stride;
                G::pack_columns(panel, columns_at, factor.stride, columns, depth);
                constexpr auto size = static_cast<int64_t>(sizeof(T));
                const int64_t beyond = left - columns;
                const NextPanel next{
                    reinterpret_cast<const char*>(columns_at + columns * factor.stride),
                    factor.stride * size, beyond < wide ? beyond : wide, depth * size};
                outer_rows<G>(GroupRows{x, rows, row_groups}, panel, groups, next,
                              sums + f * rows * width + c, width);
            }
        }
    }
    T* const result = static_cast<T*>(piece.result) + at;
    finish_sums<V>(piece, at, {sums, sums + rows * width, rows, width},
                   result + first * piece.result_stride, count);
}

template <class V, class G>
void linear_many(const LinearPiece& piece) {
    const int64_t columns = many_columns / factor_count(piece);
    for (int64_t first = 0; first < piece.row_count; first += many_rows) {
        const int64_t left = piece.row_count - first, rows = left < many_rows ? left : many_rows;
        for (int64_t at = piece.begin; at < piece.end; at += columns)
            outer_block<V, G>(piece, first, rows, at,
                              piece.end - at < columns ? piece.end - at : columns);
    }
}
