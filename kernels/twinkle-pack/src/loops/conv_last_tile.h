// Tiles of convolutions where channels lie last: sums of what some pixels see with the weights of
// some vectors of channels, a panel.

// Taps of a slab whose sums are one.
struct LastChain {
    int64_t channel, channels, taps;
    bool is_first, is_last;  // of all
};

// What a tile's sums are made of.
template <class T>
struct LastFactors {
    LastChain chain;
    const T* const* seen;  // [tap of the chain][pixel]
    int64_t seen_stride;
    WeightBlocks weights;  // of the chain
    NextPanel next;        // is fetched meanwhile
    const T* zeros;        // what a pixel sees beside x
};

// Lines of a panel, a few at a time: more requests than the core keeps would hold up what is
// computed.
class Fetching {
public:
    // In so many steps.
    Fetching(const NextPanel& panel, int64_t steps)
        : panel_(panel), each_((panel.rows * ((panel.bytes + 63) / 64) + steps - 1) / steps) {}

    inline __attribute__((always_inline)) void step() {
        for (int64_t i = 0; i < each_ && row_ < panel_.rows; ++i) {
            __builtin_prefetch(panel_.data + row_ * panel_.stride + at_, 0, 2);
            at_ += 64;
            if (at_ >= panel_.bytes) {
                at_ = 0;
                ++row_;
            }
        }
    }

private:
    const NextPanel& panel_;
    int64_t each_, row_ = 0, at_ = 0;
};

// A tile: some pixels with some vectors of channels.
template <class T>
struct LastTile {
    const ConvPiece& piece;
    LastFactors<T> factors;
    // Where sums wait for others and for activations that are no limits: of float32 in the result.
    float* sums;
    int64_t sums_pixel;
    T* result;
    const T* residual;  // null: none
    bool acts_later;
    const float *scale, *shift;
    int64_t channels;  // the last vector may have fewer
    float least, most;
    bool is_first;     // who sees these pixels of x
    RowsAhead* ahead;  // null: none
};

template <class V, class M, int pixels, int vectors, class T>
inline __attribute__((always_inline)) void last_sums(const LastFactors<T>& factors,
                                                     typename V::reg (&sum)[pixels][vectors]) {
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[p][v] = V::set1(0);
    const int64_t channel = factors.chain.channel, channels = factors.chain.channels;
    constexpr int64_t fetch_step = 16;
    Fetching fetching(factors.next,
                      factors.chain.taps * ((channels + fetch_step - 1) / fetch_step));
    for (int64_t tap = 0; tap < factors.chain.taps; ++tap) {
        const T* const* const seen = factors.seen + tap * factors.seen_stride;
        const T* x[pixels];
        bool sees = false;
#pragma GCC unroll 8
        for (int p = 0; p < pixels; ++p) {
            sees = sees || seen[p] != factors.zeros;
            x[p] = seen[p] + channel * M::per_group;
        }
        if (!sees) continue;
        const float* weights[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
            weights[v] = factors.weights.first + v * V::width / last_lanes * factors.weights.block +
                         v * V::width % last_lanes + tap * factors.weights.tap;
        for (int64_t begin = 0; begin < channels; begin += fetch_step) {
            const int64_t end = begin + fetch_step < channels ? begin + fetch_step : channels;
            fetching.step();
            for (int64_t c = begin; c < end; ++c) {
                typename M::factor w[vectors];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v) w[v] = M::load(weights[v] + c * last_lanes);
#pragma GCC unroll 8
                for (int p = 0; p < pixels; ++p) {
                    const auto value = M::broadcast(x[p] + c * M::per_group);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; ++v) sum[p][v] = M::fma(value, w[v], sum[p][v]);
                }
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
            float* const sums = tile.sums + p * tile.sums_pixel + v * V::width;
            auto value = sum[p][v];
            if (!tile.factors.chain.is_first) value = V::add(value, load_first<V>(sums, n));
            if (tile.factors.chain.is_last) {
                value = V::fma(value, scale, shift);
                if (tile.residual) {
                    const T* const residual =
                        tile.residual + p * shape.residual_pixel + v * V::width;
                    value = V::add(value, load_first<V>(residual, n));
                }
                value = V::clamp(value, least, most);
            }
            if (tile.factors.chain.is_last && !tile.acts_later)
                store_first<V>(tile.result + p * shape.result_pixel + v * V::width, value, n);
            else
                store_first<V>(sums, value, n);
        }
    }
}

template <class V, class M, int pixels, int vectors, class T>
__attribute__((noinline)) void last_tile_of(const LastTile<T>& tile) {
    typename V::reg sum[pixels][vectors];
    last_sums<V, M, pixels, vectors>(tile.factors, sum);
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

template <class V, class M, int pixels, int vectors, class T>
void last_tile(const LastTile<T>& tile, int64_t wanted) {
    if (wanted == pixels) return last_tile_of<V, M, pixels, vectors>(tile);
    if constexpr (pixels > 1) last_tile<V, M, pixels - 1, vectors>(tile, wanted);
}

// What is no limit is computed from the sums that a tile has stored.
template <class V, class A, class T>
void activate_last(const LastTile<T>& tile, int64_t pixels, const T* residual) {
    const ConvShape& shape = *tile.piece.shape;
    for (int64_t p = 0; p < pixels; ++p)
        for (int64_t c = 0; c < tile.channels; c += V::width) {
            const int64_t left = tile.channels - c, n = left < V::width ? left : V::width;
            T* const to = tile.result + p * shape.result_pixel + c;
            auto value =
                A::template value<V>(load_first<V>(tile.sums + p * tile.sums_pixel + c, n));
            if (residual)
                value = V::add(value, load_first<V>(residual + p * shape.residual_pixel + c, n));
            store_first<V>(to, value, n);
        }
}
