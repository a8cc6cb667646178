// Tiles of convolutions where channels lie last: sums of what some pixels see with the weights of
// some vectors of channels, a panel.

// Taps of a slab whose sums are one.
struct LastChain {
    int64_t channel, channels, taps;
    bool is_first, is_last;  // of all
};

// A tile: some pixels with some vectors of channels.
template <class T>
struct LastTile {
    const ConvPiece& piece;
    LastChain chain;
    const T* const* seen;  // [tap of the chain][pixel]
    int64_t seen_stride;
    WeightBlocks weights;  // of the chain
    T* result;
    const T* residual;  // null: none
    const float *scale, *shift;
    int64_t channels;  // the last vector may have fewer
    float least, most;
};

template <class V, int pixels, int vectors, class T>
inline __attribute__((always_inline)) void last_sums(const LastTile<T>& tile,
                                                     typename V::reg (&sum)[pixels][vectors]) {
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[p][v] = V::set1(0);
    const int64_t channel = tile.chain.channel, channels = tile.chain.channels;
    for (int64_t tap = 0; tap < tile.chain.taps; ++tap) {
        const T* const* const seen = tile.seen + tap * tile.seen_stride;
        const T* x[pixels];
#pragma GCC unroll 8
        for (int p = 0; p < pixels; ++p) x[p] = seen[p] + channel;
        const float* weights[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            weights[v] = tile.weights.first + v * V::width / last_lanes * tile.weights.block +
                         v * V::width % last_lanes + tap * tile.weights.tap;
        for (int64_t c = 0; c < channels; ++c) {
            typename V::reg w[vectors];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) w[v] = V::load(weights[v] + c * last_lanes);
#pragma GCC unroll 8
            for (int p = 0; p < pixels; ++p) {
                const auto value = V::set1(to_float(x[p][c]));
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v) sum[p][v] = V::fma(value, w[v], sum[p][v]);
            }
        }
    }
}

// Scale, shift, residual, and the activations that are limits.
template <class V, int pixels, int vectors, bool whole, class T>
inline __attribute__((always_inline)) void finish_last(const LastTile<T>& tile,
                                                       typename V::reg (&sum)[pixels][vectors]) {
    const ConvShape& shape = *tile.piece.shape;
    const float least = tile.least, most = tile.most;
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
        const int64_t left = tile.channels - v * V::width;
        const int64_t n = whole || left > V::width ? V::width : left;
        const auto scale = load_first<V>(tile.scale + v * V::width, n);
        const auto shift = load_first<V>(tile.shift + v * V::width, n);
#pragma GCC unroll 8
        for (int p = 0; p < pixels; ++p) {
            T* const to = tile.result + p * shape.result_pixel + v * V::width;
            auto value = sum[p][v];
            if (!tile.chain.is_first) value = V::add(value, load_first<V>(to, n));
            if (tile.chain.is_last) {
                value = V::fma(value, scale, shift);
                if (tile.residual) {
                    const T* const residual =
                        tile.residual + p * shape.residual_pixel + v * V::width;
                    value = V::add(value, load_first<V>(residual, n));
                }
                value = V::clamp(value, least, most);
            }
            store_first<V>(to, value, n);
        }
    }
}

template <class V, int pixels, int vectors, class T>
__attribute__((noinline)) void last_tile_of(const LastTile<T>& tile) {
    typename V::reg sum[pixels][vectors];
    last_sums<V, pixels, vectors>(tile, sum);
    if (tile.channels == vectors * V::width)
        finish_last<V, pixels, vectors, true>(tile, sum);
    else
        finish_last<V, pixels, vectors, false>(tile, sum);
}

// Vectors of a slab, and the pixels that then fit the registers.
template <class V>
constexpr int most_last_vectors = V::width >= 16 ? 4 : 2;
template <class V>
constexpr int last_pixels(int vectors) {
    if (V::width < 16) return 6;
    return vectors == 4 ? 6 : 8;
}

template <class V, int pixels, int vectors, class T>
void last_tile(const LastTile<T>& tile, int64_t wanted) {
    if (wanted == pixels) return last_tile_of<V, pixels, vectors>(tile);
    if constexpr (pixels > 1) last_tile<V, pixels - 1, vectors>(tile, wanted);
}

// What is no limit is computed from what a tile has stored.
template <class V, class A, class T>
void activate_last(const LastTile<T>& tile, int64_t pixels, const T* residual) {
    const ConvShape& shape = *tile.piece.shape;
    for (int64_t p = 0; p < pixels; ++p)
        for (int64_t c = 0; c < tile.channels; c += V::width) {
            const int64_t left = tile.channels - c, n = left < V::width ? left : V::width;
            T* const to = tile.result + p * shape.result_pixel + c;
            auto value = A::template value<V>(load_first<V>(to, n));
            if (residual)
                value = V::add(value, load_first<V>(residual + p * shape.residual_pixel + c, n));
            store_first<V>(to, value, n);
        }
}
