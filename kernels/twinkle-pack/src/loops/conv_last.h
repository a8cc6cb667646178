// Convolutions of images whose channels lie last: each element of a pixel meets the weights of
// some vectors of channels of the result, so that x is read where it lies.
//
// A group of channels is computed one slab of the depth after the other, whose weights are copied
// into blocks first. A chain of a panel stays in the first cache while some pixels meet it, what
// these see of x in the second one. Sums wait in the result, if that is of float32.

constexpr int64_t most_pixels_at_once = 128;

struct LastScratch {
    // Twice, for the rows between taps (LastSlab).
    alignas(64) float weights[2 * last_depth * least_last_group];
};
static_assert(sizeof(LastScratch) <= conv_scratch);

// `count` pixels with a panel.
template <class V, class M, int vectors, class A, class T>
void last_panel(LastTile<T> tile, int64_t count, const NextPanel& next) {
    constexpr int most = last_pixels<V>(vectors);
    constexpr bool is_limit = __is_same(A, Unchanged) || __is_same(A, Relu) || __is_same(A, Relu6);
    const ConvPiece& piece = tile.piece;
    const ConvShape& shape = *piece.shape;
    const int64_t tiles = (count + most - 1) / most;
    const T* residual = tile.residual;
    tile.acts_later = tile.factors.chain.is_last && !(is_limit && !piece.residual_last);
    if (tile.acts_later && piece.residual_last) tile.residual = nullptr;
    if (!tile.acts_later && is_limit && !__is_same(A, Unchanged)) tile.least = 0;
    if (!tile.acts_later && __is_same(A, Relu6)) tile.most = 6;
    for (int64_t t = 0, p = 0; t < tiles; ++t) {
        const int64_t n = (count - p + tiles - t - 1) / (tiles - t);
        tile.factors.next = next.part(t, tiles);
        if (tile.is_first) {
            const int64_t left = count - p - n;
            fetch_pixels(tile.factors.seen + n, left < n ? left : n,
                         tile.factors.chain.channel * M::per_group,
                         tile.factors.chain.channels * M::per_group);
        }
        if (tile.ahead) tile.ahead->fetch();
        last_tile<V, M, most, vectors>(tile, n);
        if (tile.acts_later) activate_last<V, A>(tile, n, piece.residual_last ? residual : nullptr);
        p += n;
        tile.factors.seen += n;
        tile.sums += n * tile.sums_pixel;
        tile.result += n * shape.result_pixel;
        if (tile.residual) tile.residual += n * shape.residual_pixel;
        if (residual) residual += n * shape.residual_pixel;
    }
}

template <class V, class M, class A, int vectors, class T>
void last_vectors(const LastTile<T>& tile, int64_t wanted, int64_t count, const NextPanel& next) {
    if (wanted == vectors) return last_panel<V, M, vectors, A>(tile, count, next);
    if constexpr (vectors > 1) last_vectors<V, M, A, vectors - 1>(tile, wanted, count, next);
}

// Panels of a group of channels: as many vectors in each as fit a tile, or one fewer.
template <class V, class F>
void for_panels(int64_t channels, F f) {
    constexpr int64_t most = most_last_vectors<V>;
    const int64_t vectors = (channels + V::width - 1) / V::width;
    const int64_t panels = (vectors + most - 1) / most;
    for (int64_t panel = 0, first = 0; panel < panels; ++panel) {
        const int64_t some = (vectors - first / V::width + panels - panel - 1) / (panels - panel);
        const int64_t rest = channels - first, lanes = some * V::width;
        f(panel, panels, first, lanes < rest ? lanes : rest);
        first += lanes;
    }
}

// Some pixels of a piece, from `begin` on, counted from its first one.
struct SomePixels {
    int64_t begin, count;
};

// These with a group of `channels` from `first` on: chain by chain, panel by panel.
template <class V, class M, class A, class T>
void last_chains(const ConvPiece& piece, const WeightBlocks& weights, const LastPixels<T>& pixels,
                 const LastSlab& slab, const SomePixels& some, int64_t first, int64_t channels,
                 const NextPanel& next, RowsAhead& ahead) {
    const ConvShape& shape = *piece.shape;
    const int64_t pixel = piece.pixel_begin + some.begin;
    T* const result = static_cast<T*>(piece.result) + pixel * shape.result_pixel + first;
    float* sums = pixels.sums + some.begin * most_last_group;
    int64_t sums_pixel = most_last_group;
    if constexpr (__is_same(T, float)) {
        sums = result;
        sums_pixel = shape.result_pixel;
    }
    const T* residual = static_cast<const T*>(piece.residual);
    if (residual) residual += pixel * shape.residual_pixel + first;
    const bool is_apart = shape.taps == 1 && slab.channels * 4 >= least_bytes_ahead;
    for (int64_t tap = 0; tap < slab.taps; tap += slab.chain) {
        const int64_t left = slab.taps - tap;
        const LastChain chain{slab.channel, slab.channels, left < slab.chain ? left : slab.chain,
                              slab.is_first && tap == 0, slab.is_last && left <= slab.chain};
        const NextPanel meanwhile = next.part(tap, slab.taps, chain.taps);
        for_panels<V>(channels, [&](int64_t panel, int64_t panels, int64_t channel, int64_t lanes) {
            const int64_t vectors = (lanes + V::width - 1) / V::width;
            const LastTile<T> tile{piece,
                                   {chain,
                                    pixels.seen + (slab.tap + tap) * pixels.stride + some.begin,
                                    pixels.stride,
                                    weights.from(channel, tap),
                                    {},
                                    pixels.zeros},
                                   sums + channel,
                                   sums_pixel,
                                   result + channel,
                                   residual ? residual + channel : nullptr,
                                   false,
                                   piece.scale + first + channel,
                                   piece.shift + first + channel,
                                   lanes,
                                   -__builtin_inff(),
                                   __builtin_inff(),
                                   panel == 0 && is_apart,
                                   chain.is_last && piece.residual ? &ahead : nullptr};
            last_vectors<V, M, A, most_last_vectors<V>>(tile, vectors, some.count,
                                                        meanwhile.part(panel, panels));
        });
    }
}

// Channels [first, end) of the residual, from a pixel on, while `count` pixels are computed; behind
// the last channel the first ones of the pixels that follow the piece.
template <class V, class T>
RowsAhead residual_ahead(const ConvPiece& piece, int64_t pixel, int64_t first, int64_t end,
                         int64_t count) {
    const ConvShape& shape = *piece.shape;
    if (first == end) {
        pixel = piece.pixel_end;
        first = piece.begin;
        end = piece.end;
    }
    const int64_t left = shape.images * shape.out_pixels - pixel;
    const int64_t width = end - first < most_last_group ? end - first : most_last_group;
    constexpr int64_t vectors = most_last_vectors<V>;
    const int64_t panels = (width + vectors * V::width - 1) / (vectors * V::width);
    const T* const from =
        static_cast<const T*>(piece.residual) + pixel * shape.residual_pixel + first;
    constexpr int64_t size = sizeof(T);
    return {from, shape.residual_pixel * size, width * size,
            left < most_pixels_at_once ? left : most_pixels_at_once,
            panels * (count / last_pixels<V>(vectors) + 1)};
}

// Channels [first, end) of the result.
template <class V, class M, class A, class T>
void last_channels(const ConvPiece& piece, LastScratch& at, const LastPixels<T>& pixels,
                   int64_t first, int64_t end) {
    const int64_t channels = end - first, count = piece.pixel_end - piece.pixel_begin;
    const int64_t parts = (count + most_pixels_at_once - 1) / most_pixels_at_once;
    const bool is_laid = piece.shape->weight_block != 0;
    const LaidBlocks<M> laid(piece, first);
    LastDivision(*piece.shape, M::per_group).for_slabs([&](const LastSlab& slab) {
        const LastWeights<M> weights(piece, slab, first);
        const WeightBlocks blocks =
            is_laid ? laid.blocks(slab) : copied_blocks<V>(weights, channels, at.weights);
        const NextPanel next = is_laid ? laid.behind(slab, channels, piece.end - end)
                                       : weights.behind(channels, piece.end - end);
        for (int64_t part = 0; part < parts; ++part) {
            const int64_t begin = count * part / parts, until = count * (part + 1) / parts;
            RowsAhead ahead;
            if (slab.is_last && piece.residual) {
                const bool is_end = part + 1 == parts;
                ahead = residual_ahead<V, T>(
                    piece, is_end ? piece.pixel_begin : piece.pixel_begin + until,
                    is_end ? end : first, is_end ? piece.end : end, until - begin);
            }
            last_chains<V, M, A>(piece, blocks, pixels, slab, {begin, until - begin}, first,
                                 channels, next.part(part, parts), ahead);
        }
    });
}

template <class V, class M>
void conv_last(const ConvPiece& piece) {
    using T = typename M::T;
    auto& at = *static_cast<LastScratch*>(piece.scratch);
    const LastPixels<T> pixels(piece);
    if (piece.shape->is_patched)
        copy_patches<V, M::per_group>(piece, pixels);
    else
        list_pixels(piece, pixels);
    const int64_t group = LastDivision(*piece.shape, M::per_group).group();
    with_activation(piece.finish, [&]<class A>(A*) {
        for (int64_t first = piece.begin; first < piece.end; first += group) {
            const int64_t left = piece.end - first;
            last_channels<V, M, A, T>(piece, at, pixels, first,
                                      first + (left < group ? left : group));
        }
    });
}
