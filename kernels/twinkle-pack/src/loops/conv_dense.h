// Convolutions as outer products: each weight meets the pixels that it is multiplied by, 2 * lanes
// of them at a time. Weights are read as they lie; panels of pixels are copied from x, or from a
// band of it.
//
// G, beside what outer products need: store(float*, reg), plus(reg, const float*), Dot (as in
// loops/linear_few.h, of weights
//     as pack_row leaves them), and
//     pack_pixels(int32_t* panel, const T* x, const int64_t* offsets, depth, sources, count): for
//     each element of the depth the sources' elements at its offset.

// The stride of weights and of sums: not a multiple of a page.
constexpr int64_t conv_row_groups = conv_depth + 16, conv_sum_stride = conv_pixels + 32;
constexpr int64_t most_tile_rows = 12, most_lanes = 16;

struct ConvScratch {
    alignas(64) int32_t weights[conv_rows * conv_row_groups];
    // A row more than is used: vectors may reach beyond what they are read or written for.
    alignas(64) int32_t panel[(conv_depth + 1) * 2 * most_lanes];
    alignas(64) float tile[(most_tile_rows + 1) * 2 * most_lanes];
    alignas(64) float sums[conv_rows * conv_sum_stride];
    alignas(64) int32_t few[few_pixels(most_lanes) * conv_row_groups];
    alignas(64) float few_sums[few_pixels(most_lanes) * most_tile_rows];
    int64_t offsets[2 * conv_depth];
    PixelPanels panels;
    // The band follows.
};
static_assert(sizeof(ConvScratch) <= conv_scratch);

template <class G, int rows, int vectors>
__attribute__((noinline)) void conv_tile(const int32_t* weights, const int32_t* panel,
                                         int64_t groups, const NextPanel& next, float* to) {
    const int64_t chains = (groups + conv_chain - 1) / conv_chain;
    int64_t begin = 0;
    for (int64_t c = 0; c < chains; ++c) {
        const int64_t count = (groups - begin + chains - c - 1) / (chains - c);
        typename G::reg sum[rows][vectors];
        outer_products<G>(weights + begin, conv_row_groups, panel + begin * 2 * G::lanes, count,
                          next.after(begin), sum);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                float* const at = to + (2 * r + v) * G::lanes;
                G::store(at, c == 0 ? sum[r][v] : G::plus(sum[r][v], at));
            }
        begin += count;
    }
}

template <class G, int rows>
void conv_tile_of(int64_t wanted, bool narrow, const int32_t* weights, const int32_t* panel,
                  int64_t groups, const NextPanel& next, float* to) {
    if (wanted == rows)
        return narrow ? conv_tile<G, rows, 1>(weights, panel, groups, next, to)
                      : conv_tile<G, rows, 2>(weights, panel, groups, next, to);
    if constexpr (rows > 1)
        conv_tile_of<G, rows - 1>(wanted, narrow, weights, panel, groups, next, to);
}

// The last pixels, each with its whole depth.
template <class G>
void pack_few(ConvScratch& at, const typename G::T* x, int64_t depth, const PixelPanel& panel) {
    typename G::T column[2 * conv_depth];
    for (int64_t s = 0; s < panel.source_count; ++s)
        for (int64_t i = 0; i < panel.sources[s].count; ++i) {
            const auto* const from = x + panel.sources[s].offset + i;
            for (int64_t k = 0; k < depth; ++k) column[k] = from[at.offsets[k]];
            G::pack_row(at.few + (panel.sources[s].lane + i) * conv_row_groups, column, depth);
        }
}

template <class G>
void few_tile(ConvScratch& at, const int32_t* weights, int64_t rows, int64_t groups,
              const PixelPanel& panel) {
    using D = typename G::Dot;
    using T = typename D::T;
    constexpr int64_t each = sizeof(int32_t) / sizeof(T), stride = conv_row_groups * each;
    constexpr int64_t step = D::step / each;  // rows are filled with zeros to whole ones
    const int64_t depth = (groups + step - 1) / step * step * each;
    const T* const from = reinterpret_cast<const T*>(weights);
    for (float& sum : at.few_sums) sum = 0;
    const CopiedRows<T> pixels{reinterpret_cast<T*>(at.few), panel.width, stride};
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
        dot_rows<D, 4>(pixels, from + r * stride, stride, depth, from, at.few_sums + r,
                       most_tile_rows);
    for (; r < rows; ++r)
        dot_rows<D, 1>(pixels, from + r * stride, stride, depth, from, at.few_sums + r,
                       most_tile_rows);
    for (r = 0; r < rows; ++r)
        for (int64_t i = 0; i < panel.width; ++i)
            at.tile[r * 2 * G::lanes + i] = at.few_sums[i * most_tile_rows + r];
}

// A block of the depth for a block of channels.
struct ConvBlock {
    int64_t first, rows;  // channels of the result
    int64_t from, depth;
    bool is_first, is_last;
};

// Adds a tile to the sums of its channels, or finishes these, for the pixels of a target: all lanes
// of a vector, or some. Sums of float32 are kept in the result.
template <class V, class G, class A, bool all>
inline void add_target(const ConvPiece& piece, ConvScratch& at, const ConvBlock& block, int64_t row,
                       int64_t rows, const Target& target, int64_t panel_at) {
    using T = typename G::T;
    const ConvShape& shape = *piece.shape;
    const int64_t n = all ? V::width : target.count, first = block.first + row;
    const float* tile = at.tile + target.lane;
    T* to = static_cast<T*>(piece.result) + target.image * shape.result_image + target.pixel +
            first * shape.out_pixels;
    float* sums = at.sums + row * conv_sum_stride + panel_at + target.lane;
    int64_t sums_stride = conv_sum_stride;
    if constexpr (__is_same(T, float)) {
        sums = to;
        sums_stride = shape.out_pixels;
    }
    const auto sum_of = [&](int64_t r) {
        const auto value = V::load(tile + r * 2 * G::lanes);
        return block.is_first ? value : V::add(value, load_first<V>(sums + r * sums_stride, n));
    };
    if (!block.is_last) {
        for (int64_t r = 0; r < rows; ++r) store_first<V>(sums + r * sums_stride, sum_of(r), n);
        return;
    }
    const auto finish = [&](auto residual_of) {
        for (int64_t r = 0; r < rows; ++r)
            store_first<V>(to + r * shape.out_pixels,
                           finished<V, A, T>(piece, ChannelScale<V>(piece, first + r), sum_of(r),
                                             residual_of(r), n),
                           n);
    };
    if (!piece.residual) return finish([](int64_t) { return static_cast<const T*>(nullptr); });
    const T* const residual = static_cast<const T*>(piece.residual) +
                              target.image * shape.residual_image + target.pixel +
                              first * shape.residual_channel;
    finish([&](int64_t r) { return residual + r * shape.residual_channel; });
}

template <class V, class G, class A>
void add_tile(const ConvPiece& piece, ConvScratch& at, const ConvBlock& block, int64_t row,
              int64_t rows, const PixelPanel& panel) {
    for (int64_t t = 0; t < panel.target_count; ++t) {
        const Target& target = panel.targets[t];
        if (target.count == V::width)
            add_target<V, G, A, true>(piece, at, block, row, rows, target, panel.begin);
        else
            add_target<V, G, A, false>(piece, at, block, row, rows, target, panel.begin);
    }
}

// Asks the memory for what a tile is finished with, and for where it goes.
template <class T>
void fetch_targets(const ConvPiece& piece, const ConvBlock& block, int64_t row, int64_t rows,
                   const PixelPanel& panel) {
    const ConvShape& shape = *piece.shape;
    const T* const residual = static_cast<const T*>(piece.residual);
    const T* const result = static_cast<const T*>(piece.result);
    for (int64_t t = 0; t < panel.target_count; ++t) {
        const Target& target = panel.targets[t];
        for (int64_t r = block.first + row; r < block.first + row + rows; ++r) {
            __builtin_prefetch(
                result + target.image * shape.result_image + r * shape.out_pixels + target.pixel, 1,
                3);
            if (residual && block.is_last)
                __builtin_prefetch(residual + target.image * shape.residual_image +
                                       r * shape.residual_channel + target.pixel,
                                   0, 3);
        }
    }
}

// The pixels that a panel has beside its own, in x itself.
template <class T>
NextPanel next_panel(const PixelPanel& panel, const T* x, int64_t stride, int64_t depth) {
    const Source& source = panel.sources[0];
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    return {reinterpret_cast<const char*>(x + source.offset), stride * size, depth,
            panel.width * size};
}

// The weights that come after those of rows [begin, end) of a block: of the next rows, or of the
// next block of the depth.
template <class T>
NextPanel next_weights(const ConvPiece& piece, const ConvBlock& block, int64_t begin, int64_t end) {
    const int64_t depth = piece.shape->depth, rows = end - begin;
    const bool is_further = end == block.rows;
    if (is_further && block.is_last) return {};
    const int64_t row = block.first + (is_further ? 0 : end);
    const int64_t from = block.from + (is_further ? block.depth : 0);
    const int64_t left = block.first + block.rows - row, behind = depth - from;
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    return {static_cast<const char*>(piece.weight) + (row * depth + from) * size, depth * size,
            rows < left ? rows : left, (block.depth < behind ? block.depth : behind) * size};
}

template <class G>
void pack_weights(const ConvPiece& piece, const ConvBlock& block, int64_t begin, int64_t end,
                  int32_t* to) {
    const int64_t depth = piece.shape->depth;
    const auto* const from =
        static_cast<const typename G::T*>(piece.weight) + block.first * depth + block.from;
    for (int64_t r = begin; r < end; ++r)
        G::pack_row(to + r * conv_row_groups, from + r * depth, block.depth);
}

// The first panel's tiles pack their weights, and ask for those of the next tile.
template <class V, class G, class A>
void conv_panels(const ConvPiece& piece, ConvScratch& at, const ConvBlock& block,
                 const typename G::T* x, bool is_direct) {
    const int64_t groups = (block.depth + G::per_group - 1) / G::per_group;
    const int64_t tiles = (block.rows + G::tile_rows - 1) / G::tile_rows;
    for (int64_t p = 0; p < at.panels.count; ++p) {
        const PixelPanel& panel = at.panels.all[p];
        const bool is_few = panel.width <= few_pixels(G::lanes);
        if (is_few)
            pack_few<G>(at, x, block.depth, panel);
        else
            G::pack_pixels(at.panel, x, at.offsets, block.depth, panel.sources, panel.source_count);
        NextPanel next{};
        if (is_direct && p + 1 < at.panels.count)
            next = next_panel(at.panels.all[p + 1], x, piece.shape->x_channel, block.depth);
        int64_t row = 0;
        for (int64_t t = 0; t < tiles; ++t) {
            const int64_t count = (block.rows - row + tiles - t - 1) / (tiles - t);
            if (p == 0) pack_weights<G>(piece, block, row, row + count, at.weights);
            const NextPanel part = p == 0
                                       ? next_weights<typename G::T>(piece, block, row, row + count)
                                       : next.part(t, tiles);
            const int32_t* const weights = at.weights + row * conv_row_groups;
            fetch_targets<typename G::T>(piece, block, row, count, panel);
            if (is_few)
                few_tile<G>(at, weights, count, groups, panel);
            else
                conv_tile_of<G, G::tile_rows>(count, panel.width <= G::lanes, weights, at.panel,
                                              groups, part, at.tile);
            add_tile<V, G, A>(piece, at, block, row, count, panel);
            row += count;
        }
    }
}

// Depths of at most `most`, all channels with all of their taps if these are not too many.
inline int64_t conv_block_depth(const ConvShape& shape, int64_t most) {
    const int64_t unit = shape.taps <= most ? shape.taps : 1;
    const int64_t units = shape.depth / unit, fitting = most / unit;
    const int64_t blocks = (units + fitting - 1) / fitting;
    return (units + blocks - 1) / blocks * unit;
}

template <class V, class G, class A>
void conv_channels(const ConvPiece& piece, ConvScratch& at, const Band* band,
                   typename G::T* band_data, ConvBlock block) {
    using T = typename G::T;
    const ConvShape& shape = *piece.shape;
    const T* const x = static_cast<const T*>(piece.x);
    const int64_t most = conv_block_depth(shape, conv_depth * G::per_group), taps = shape.taps;
    const bool is_whole = piece.band_channels >= shape.channels;
    if (band && is_whole && block.first == piece.begin)
        band->copy<V>(x, shape.channels, T{}, band_data);
    for (int64_t from = 0; from < shape.depth; from += most) {
        const int64_t left = shape.depth - from, depth = left < most ? left : most;
        const int64_t channel = from / taps, end = (from + depth + taps - 1) / taps;
        for (int64_t k = 0; k < depth; ++k) {
            const int64_t c = (from + k) / taps - channel, tap = (from + k) % taps;
            at.offsets[k] = band ? c * band->channel_size +
                                       band->of_tap(tap / shape.kernel[1], tap % shape.kernel[1])
                                 : c * shape.x_channel;
        }
        const T* const first = x + channel * shape.x_channel;
        const T* source = first;
        if (band) source = is_whole ? band_data + channel * band->channel_size : band_data;
        if (band && !is_whole) band->copy<V>(first, end - channel, T{}, band_data);
        block.from = from;
        block.depth = depth;
        block.is_first = from == 0;
        block.is_last = depth == left;
        conv_panels<V, G, A>(piece, at, block, source, !band);
    }
}

template <class V, class G>
void conv_dense(const ConvPiece& piece) {
    auto& at = *static_cast<ConvScratch*>(piece.scratch);
    const Band band(*piece.shape, piece.pixel_begin, piece.pixel_end);
    const Band* const used = piece.shape->is_pointwise ? nullptr : &band;
    at.panels.divide(piece, G::lanes, used);
    auto* const band_data =
        reinterpret_cast<typename G::T*>(static_cast<char*>(piece.scratch) + conv_scratch);
    with_activation(piece.finish, [&]<class A>(A*) {
        for (int64_t first = piece.begin; first < piece.end; first += conv_rows) {
            const int64_t left = piece.end - first, rows = left < conv_rows ? left : conv_rows;
            conv_channels<V, G, A>(piece, at, used, band_data, {first, rows, 0, 0, false, false});
        }
    });
}
