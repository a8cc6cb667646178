// Convolutions of images whose channels lie last: each element of a pixel meets the weights of
// several vectors of channels of the result, so that x is read where it lies.
//
// Pixels of a piece are computed with one slab of the depth after the other: some channels of x,
// all taps of the kernel. A slab's weights are copied into the first cache, [tap][channel][lane];
// sums wait in the result. What lies beside x is a pixel of zeros.

// So many products are added up before they meet the sum of others: each addition rounds.
constexpr int64_t last_depth = conv_chain;
constexpr int64_t last_lanes = 64;  // channels of the result that share a slab

template <class T>
struct LastScratch {
    alignas(64) float weights[last_depth * last_lanes];
    const T* pixels[1];  // [tap][pixel of the piece]; the pixel of zeros and patches follow
};

// Where the parts of the scratch lie that depend on the shape.
template <class T>
struct LastPlaces {
    const T** pixels;
    T *zeros, *patches;

    LastPlaces(const ConvPiece& piece, LastScratch<T>& at) {
        const ConvShape& shape = *piece.shape;
        pixels = at.pixels;
        const int64_t taps = shape.is_patched ? 1 : shape.taps;
        zeros = reinterpret_cast<T*>(pixels + taps * piece.most_pixels);
        patches = zeros + (shape.channels + last_lanes);
    }
};

// Channels [channel, channel + channels) of x at taps [tap, tap + taps).
struct LastSlab {
    int64_t channel, channels, tap, taps;
    bool is_first, is_last;
};

// Pixels of x that a piece's pixels see at each tap.
template <class T>
void list_pixels(const ConvPiece& piece, const LastPlaces<T>& places) {
    const ConvShape& shape = *piece.shape;
    const int64_t count = piece.pixel_end - piece.pixel_begin;
    const T* const x = static_cast<const T*>(piece.x);
    for (int64_t c = 0; c < shape.channels; ++c) places.zeros[c] = T{};
    for (int64_t done = 0; done < count;) {
        const int64_t row = (piece.pixel_begin + done) / shape.out_width;
        const int64_t column = piece.pixel_begin + done - row * shape.out_width;
        const int64_t left = shape.out_width - column;
        const int64_t n = left < count - done ? left : count - done;
        const int64_t image = row / shape.out_height, y = row - image * shape.out_height;
        for (int64_t tap = 0; tap < shape.taps; ++tap) {
            const int64_t i = tap / shape.kernel[1], j = tap - i * shape.kernel[1];
            const int64_t from = y * shape.stride[0] + i * shape.dilation[0] - shape.padding[0];
            const int64_t first = j * shape.dilation[1] - shape.padding[1];
            const T** const to = places.pixels + tap * piece.most_pixels + done;
            const bool is_row = from >= 0 && from < shape.height;
            const T* const line = x + image * shape.x_image + (is_row ? from * shape.x_row : 0);
            for (int64_t p = 0; p < n; ++p) {
                const int64_t at = (column + p) * shape.stride[1] + first;
                const bool is_inside = is_row && at >= 0 && at < shape.width;
                to[p] = is_inside ? line + at * shape.x_pixel : places.zeros;
            }
        }
        done += n;
    }
}

// What each pixel sees of x, one after the other: where x has too few channels to be read along
// them. In the order of the weights.
template <class V, class T>
void copy_patches(const ConvPiece& piece, const LastPlaces<T>& places) {
    const ConvShape& shape = *piece.shape;
    const T* const x = static_cast<const T*>(piece.x);
    const int64_t depth = shape.depth, across = shape.kernel[1];
    for (int64_t p = piece.pixel_begin; p < piece.pixel_end; ++p) {
        const int64_t row = p / shape.out_width, image = row / shape.out_height;
        const int64_t top = (row - image * shape.out_height) * shape.stride[0] - shape.padding[0];
        const int64_t left = (p - row * shape.out_width) * shape.stride[1] - shape.padding[1];
        T* to = places.patches + (p - piece.pixel_begin) * depth;
        places.pixels[p - piece.pixel_begin] = to;
        const bool is_inside = left >= 0 && left + (across - 1) * shape.dilation[1] < shape.width;
        for (int64_t c = 0; c < shape.channels; ++c)
            for (int64_t i = 0; i < shape.kernel[0]; ++i, to += across) {
                const int64_t y = top + i * shape.dilation[0];
                const bool is_row = y >= 0 && y < shape.height;
                const T* const from = x + image * shape.x_image + c * shape.x_channel +
                                      (is_row ? y * shape.x_row + left * shape.x_pixel : 0);
                const int64_t step = shape.dilation[1] * shape.x_pixel;
                // The next row overwrites what is too much.
                if constexpr (requires { V::load_some(from, across); })
                    if (is_row && is_inside && step == 1 && across <= V::width) {
                        V::store(to, V::load_some(from, across));
                        continue;
                    }
                if (is_row && is_inside)
                    for (int64_t j = 0; j < across; ++j) to[j] = from[j * step];
                else
                    for (int64_t j = 0; j < across; ++j) {
                        const int64_t at = left + j * shape.dilation[1];
                        to[j] = is_row && at >= 0 && at < shape.width ? from[j * step] : T{};
                    }
            }
    }
}

// Where a slab's weights come from and go to.
template <class T>
struct LastWeights {
    const ConvShape& shape;
    const LastSlab& slab;
    const T* from;  // of the first channel of the result
    // Neighbours in memory are neighbours along the channels of x, or along the taps of all these.
    bool by_channel;
    int64_t rows, along;

    LastWeights(const ConvPiece& piece, const LastSlab& of, int64_t first)
        : shape(*piece.shape),
          slab(of),
          from(static_cast<const T*>(piece.weight) + first * shape.depth),
          by_channel(shape.weight_in == 1),
          rows(by_channel ? of.taps : 1),
          along(by_channel ? of.channels : of.channels * of.taps) {}

    // What the next slab needs: of these rows, or of the next panel's.
    NextPanel behind(int64_t lanes, int64_t left) const {
        if (by_channel && shape.taps > 1) return {};
        constexpr auto size = static_cast<int64_t>(sizeof(T));
        const T* const next = slab.is_last ? from + lanes * shape.depth : row(0) + along;
        const int64_t rows_left = left - lanes < lanes ? left - lanes : lanes;
        return {reinterpret_cast<const char*>(next), shape.depth * size,
                slab.is_last ? rows_left : lanes, along * size};
    }

    const T* row(int64_t r) const {
        return from + slab.channel * shape.weight_in + (slab.tap + r) * shape.weight_tap;
    }
    // The places of neighbours in the slab.
    void list_places(int64_t r, int64_t* to) const {
        int64_t c = 0, tap = 0;
        for (int64_t k = 0; k < along; ++k) {
            to[k] = by_channel ? r * slab.channels + k : tap * slab.channels + c;
            if (++tap == slab.taps) {
                tap = 0;
                ++c;
            }
        }
    }
};

// The weights of channels [first, first + lanes) of the result; lanes beyond are zeros.
template <class V, class G, class T>
void copy_weights(LastScratch<T>& at, const LastWeights<T>& weights, int64_t lanes,
                  int64_t stride) {
    int64_t places[last_depth];
    for (int64_t r = 0; r < weights.rows; ++r) {
        weights.list_places(r, places);
        for (int64_t lane = 0; lane < lanes; lane += V::width) {
            const T* const from = weights.row(r) + lane * weights.shape.depth;
            const int64_t left = lanes - lane, count = left < V::width ? left : V::width;
            for (int64_t k = 0; k < weights.along; k += V::width) {
                const int64_t behind = weights.along - k;
                G::transpose_to(from + k, weights.shape.depth, count,
                                behind < V::width ? behind : V::width, at.weights + lane, stride,
                                places + k);
            }
        }
    }
}

// A tile: some pixels with some vectors of channels.
template <class T>
struct LastTile {
    const ConvPiece& piece;
    const LastSlab& slab;
    const T* const* pixels;  // of the first tap of the slab
    const float* weights;
    T* result;
    const T* residual;  // null: none
    const float *scale, *shift;
    int64_t channels;  // the last vector may have fewer
    float least, most;
    NextPanel next;  // weights
};

template <class V, int pixels, int vectors, class T>
inline __attribute__((always_inline)) void last_sums(const LastTile<T>& tile,
                                                     typename V::reg (&sum)[pixels][vectors]) {
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[p][v] = V::set1(0);
    const float* weights = tile.weights;
    const int64_t channel = tile.slab.channel, channels = tile.slab.channels;
    for (int64_t tap = 0; tap < tile.slab.taps; ++tap) {
        const T* const* const seen = tile.pixels + tap * tile.piece.most_pixels;
        const T* x[pixels];
#pragma GCC unroll 8
        for (int p = 0; p < pixels; ++p) x[p] = seen[p] + channel;
        for (int64_t c = 0; c < channels; ++c, weights += vectors * V::width) {
            typename V::reg w[vectors];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) w[v] = V::load(weights + v * V::width);
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
            if (!tile.slab.is_first) value = V::add(value, load_first<V>(to, n));
            if (tile.slab.is_last) {
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

inline void fetch_rows(const NextPanel& next, int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
        for (int64_t at = 0; at < next.bytes; at += 64)
            __builtin_prefetch(next.data + r * next.stride + at, 0, 2);
}

template <class V, int vectors, class A, class T>
void last_pixels_of(const ConvPiece& piece, LastTile<T> tile) {
    constexpr int most = last_pixels<V>(vectors);
    constexpr bool is_limit = __is_same(A, Unchanged) || __is_same(A, Relu) || __is_same(A, Relu6);
    const ConvShape& shape = *piece.shape;
    const int64_t count = piece.pixel_end - piece.pixel_begin, tiles = (count + most - 1) / most;
    const T* residual = tile.residual;
    const bool acts_later = tile.slab.is_last && !(is_limit && !piece.residual_last);
    if (acts_later && piece.residual_last) tile.residual = nullptr;
    if (!acts_later && is_limit && !__is_same(A, Unchanged)) tile.least = 0;
    if (!acts_later && __is_same(A, Relu6)) tile.most = 6;
    for (int64_t t = 0, p = 0; t < tiles; ++t) {
        const int64_t n = (count - p + tiles - t - 1) / (tiles - t);
        fetch_rows(tile.next, tile.next.rows * t / tiles, tile.next.rows * (t + 1) / tiles);
        last_tile<V, most, vectors>(tile, n);
        if (acts_later) activate_last<V, A>(tile, n, piece.residual_last ? residual : nullptr);
        p += n;
        tile.pixels += n;
        tile.result += n * shape.result_pixel;
        if (tile.residual) tile.residual += n * shape.residual_pixel;
        if (residual) residual += n * shape.residual_pixel;
    }
}

template <class V, class A, int vectors, class T>
void last_vectors(const ConvPiece& piece, const LastTile<T>& tile, int64_t wanted) {
    if (wanted == vectors) return last_pixels_of<V, vectors, A>(piece, tile);
    if constexpr (vectors > 1) last_vectors<V, A, vectors - 1>(piece, tile, wanted);
}

// Channels of x that share a slab: whole vectors of them, and about as many in each slab.
inline int64_t last_slab_channels(int64_t channels, int64_t taps) {
    const int64_t fitting = taps < last_depth ? last_depth / taps : 1;
    const int64_t parts = (channels + fitting - 1) / fitting;
    const int64_t each = (channels + parts - 1) / parts, rounded = (each + 15) / 16 * 16;
    return rounded <= fitting ? rounded : each;
}

// Channels [first, first + lanes) of the result: at most as many vectors as fit a tile.
template <class V, class G, class A, class T>
void last_panel(const ConvPiece& piece, LastScratch<T>& at, const LastPlaces<T>& places,
                int64_t first, int64_t lanes) {
    const ConvShape& shape = *piece.shape;
    const int64_t channels = shape.is_patched ? shape.depth : shape.channels;
    const int64_t taps = shape.is_patched ? 1 : shape.taps;
    const int64_t each = last_slab_channels(channels, taps);
    const int64_t taps_each = taps < last_depth ? taps : last_depth;
    const int64_t vectors = (lanes + V::width - 1) / V::width;
    for (int64_t channel = 0; channel < channels; channel += each)
        for (int64_t tap = 0; tap < taps; tap += taps_each) {
            const int64_t left = channels - channel, taps_left = taps - tap;
            const LastSlab slab{channel,
                                left < each ? left : each,
                                tap,
                                taps_left < taps_each ? taps_left : taps_each,
                                channel == 0 && tap == 0,
                                left <= each && taps_left <= taps_each};
            const LastWeights<T> weights(piece, slab, first);
            copy_weights<V, G>(at, weights, lanes, vectors * V::width);
            const T* const residual = static_cast<const T*>(piece.residual);
            const LastTile<T> tile{
                piece,
                slab,
                places.pixels + tap * piece.most_pixels,
                at.weights,
                static_cast<T*>(piece.result) + piece.pixel_begin * shape.result_pixel + first,
                residual ? residual + piece.pixel_begin * shape.residual_pixel + first : nullptr,
                piece.scale + first,
                piece.shift + first,
                lanes,
                -__builtin_inff(),
                __builtin_inff(),
                weights.behind(lanes, piece.end - first)};
            last_vectors<V, A, most_last_vectors<V>>(piece, tile, vectors);
        }
}

template <class V, class G, class T>
void conv_last(const ConvPiece& piece) {
    auto& at = *static_cast<LastScratch<T>*>(piece.scratch);
    const LastPlaces<T> places(piece, at);
    if (piece.shape->is_patched)
        copy_patches<V>(piece, places);
    else
        list_pixels(piece, places);
    constexpr int64_t most = most_last_vectors<V>;
    const int64_t vectors = (piece.end - piece.begin + V::width - 1) / V::width;
    const int64_t panels = (vectors + most - 1) / most;
    with_activation(piece.finish, [&]<class A>(A*) {
        int64_t first = piece.begin, left = vectors;
        for (int64_t panel = 0; panel < panels; ++panel) {
            const int64_t some = (left + panels - panel - 1) / (panels - panel);
            const int64_t rest = piece.end - first, lanes = some * V::width;
            last_panel<V, G, A>(piece, at, places, first, lanes < rest ? lanes : rest);
            first += lanes;
            left -= some;
        }
    });
}
