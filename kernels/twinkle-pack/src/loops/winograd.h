// 3 x 3 convolutions that move by one pixel, where channels lie last, by minimal filtering
// (loops/winograd_weights.h): tiles of 4 x 4 pixels of x, two pixels apart, become 16 vectors each,
// which meet the weights one product after the other; each tile's sums become 2 x 2 pixels.

constexpr int64_t winograd_panel = 64;  // channels of the result that are computed together

// Behind ConvPiece::scratch's fixed part: numbers of some tiles for each product. A vector between
// products keeps them from sharing places in the cache.
struct WinogradScratch {
    int64_t seen_stride, sum_stride;  // from product to product
    float *zeros, *seen, *sums;       // seen: [tile][channel of x]; sums: [tile][winograd_panel]

    WinogradScratch(const ConvPiece& piece, int64_t tiles)
        : seen_stride(tiles * piece.shape->channels + last_lanes),
          sum_stride(tiles * winograd_panel + last_lanes),
          zeros(reinterpret_cast<float*>(static_cast<char*>(piece.scratch) + conv_scratch)),
          seen(zeros + (piece.shape->channels + 15) / 16 * 16),
          sums(seen + winograd_products * seen_stride) {}
};

// The tiles of a piece, which has whole rows of them.
struct WinogradTiles {
    const ConvShape& shape;
    int64_t across, down;  // of an image
    int64_t begin, end;    // rows, through all images

    explicit WinogradTiles(const ConvPiece& piece)
        : shape(*piece.shape),
          across((shape.out_width + 1) / 2),
          down((shape.out_height + 1) / 2),
          begin(row_of(piece.pixel_begin)),
          end(row_of(piece.pixel_end - 1) + 1) {}

    int64_t count() const { return (end - begin) * across; }
    int64_t row_of(int64_t pixel) const {
        const int64_t image = pixel / shape.out_pixels;
        return image * down + (pixel - image * shape.out_pixels) / shape.out_width / 2;
    }
    // Calls f(tile, image, y, x) with each tile's first pixel of the result, of all rows or one.
    template <class F>
    void for_each(F f) const {
        for (int64_t row = begin; row < end; ++row) for_each_of(row, f);
    }
    template <class F>
    void for_each_of(int64_t row, F f) const {
        const int64_t image = row / down, y = (row - image * down) * 2;
        int64_t tile = (row - begin) * across;
        for (int64_t x = 0; x < shape.out_width; x += 2) f(tile++, image, y, x);
    }
    // The first pixel of a row of tiles, or the one behind all.
    int64_t first_pixel(int64_t row) const {
        const int64_t image = row / down, y = (row - image * down) * 2;
        return (image * shape.out_height + y) * shape.out_width;
    }
};

// B^T d of four numbers: (d0 - d2, d1 + d2, d2 - d1, d1 - d3).
template <class V>
inline __attribute__((always_inline)) void differ_four(typename V::reg (&d)[4]) {
    const auto minus = V::set1(-1.0F);
    const auto first = V::fma(d[2], minus, d[0]), sum = V::add(d[1], d[2]);
    const auto third = V::fma(d[1], minus, d[2]), last = V::fma(d[3], minus, d[1]);
    d[0] = first;
    d[1] = sum;
    d[2] = third;
    d[3] = last;
}

// B^T d B of a vector of `n` channels of 16 pixels, from `channel` on.
template <class V>
inline __attribute__((always_inline)) void differ_tile(const float* const (&pixels)[16],
                                                       int64_t channel, int64_t n, float* to,
                                                       int64_t stride) {
    typename V::reg columns[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) columns[j][i] = load_first<V>(pixels[4 * i + j] + channel, n);
        differ_four<V>(columns[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        typename V::reg row[4] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
        differ_four<V>(row);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) store_first<V>(to + (4 * i + j) * stride, row[j], n);
    }
}

template <class V>
void differ_tiles(const ConvPiece& piece, const WinogradTiles& tiles, const WinogradScratch& at) {
    const ConvShape& shape = *piece.shape;
    const auto* const x = static_cast<const float*>(piece.x);
    const int64_t channels = shape.channels;
    for (int64_t c = 0; c < channels; ++c) at.zeros[c] = 0;
    tiles.for_each([&](int64_t tile, int64_t image, int64_t top, int64_t left) {
        const float* pixels[16];
        for (int i = 0; i < 16; ++i) {
            const int64_t row = top - shape.padding[0] + i / 4;
            const int64_t column = left - shape.padding[1] + i % 4;
            const bool is_inside =
                row >= 0 && row < shape.height && column >= 0 && column < shape.width;
            pixels[i] = is_inside
                            ? x + image * shape.x_image + row * shape.x_row + column * shape.x_pixel
                            : at.zeros;
        }
        float* const to = at.seen + tile * channels;
        int64_t c = 0;
        for (; c + V::width <= channels; c += V::width)
            differ_tile<V>(pixels, c, V::width, to + c, at.seen_stride);
        if (c < channels) differ_tile<V>(pixels, c, channels - c, to + c, at.seen_stride);
    });
}

// Sums of one product: some tiles with some vectors of channels of the result.
struct WinogradProduct {
    const ConvPiece& piece;
    const float* seen;     // of the first tile
    WeightBlocks weights;  // of the first channel
    float* sums;
};

template <class V, class M, int rows, int vectors>
__attribute__((noinline)) void winograd_rows(const WinogradProduct& product) {
    const int64_t channels = product.piece.shape->channels;
    const float* seen[rows];
    for (int r = 0; r < rows; ++r) seen[r] = product.seen + r * channels;
    for (int64_t first = 0; first < channels; first += last_chain) {
        const int64_t left = channels - first;
        WeightBlocks weights = product.weights;
        weights.first += first * last_lanes;
        const LastChain chain{first, left < last_chain ? left : last_chain, 1, first == 0, false};
        typename V::reg sum[rows][vectors];
        last_sums<V, M, rows, vectors>(LastFactors<float>{chain, seen, 0, weights, {}, nullptr},
                                       sum);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) {
                float* const to = product.sums + r * winograd_panel + v * V::width;
                V::store(to, first == 0 ? sum[r][v] : V::add(sum[r][v], V::load(to)));
            }
    }
}

template <class V, class M, int rows, int vectors>
void some_winograd_rows(const WinogradProduct& product, int64_t wanted) {
    if (wanted == rows) return winograd_rows<V, M, rows, vectors>(product);
    if constexpr (rows > 1) some_winograd_rows<V, M, rows - 1, vectors>(product, wanted);
}

template <class V, class M, int vectors>
void winograd_vectors(WinogradProduct product, int64_t wanted, int64_t count) {
    if constexpr (vectors > 1) {
        if (wanted < vectors) return winograd_vectors<V, M, vectors - 1>(product, wanted, count);
    }
    constexpr int most = last_pixels<V>(vectors);
    const int64_t parts = (count + most - 1) / most;
    for (int64_t part = 0, tile = 0; part < parts; ++part) {
        const int64_t n = (count - tile + parts - part - 1) / (parts - part);
        some_winograd_rows<V, M, most, vectors>(product, n);
        tile += n;
        product.seen += n * product.piece.shape->channels;
        product.sums += n * winograd_panel;
    }
}

// A^T s of four sums: (s0 + s1 + s2, s1 - s2 - s3).
template <class V>
inline __attribute__((always_inline)) void join_four(const typename V::reg (&s)[4],
                                                     typename V::reg (&to)[2]) {
    const auto minus = V::set1(-1.0F);
    to[0] = V::add(s[0], V::add(s[1], s[2]));
    to[1] = V::fma(V::add(s[2], s[3]), minus, s[1]);
}

// A^T s A of a vector of channels.
template <class V>
inline __attribute__((always_inline)) void join_sums(const float* sums, int64_t stride,
                                                     typename V::reg (&pixels)[4]) {
    typename V::reg columns[4][2];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
        const typename V::reg column[4] = {
            V::load(sums + j * stride), V::load(sums + (4 + j) * stride),
            V::load(sums + (8 + j) * stride), V::load(sums + (12 + j) * stride)};
        join_four<V>(column, columns[j]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
        const typename V::reg row[4] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
        typename V::reg joined[2];
        join_four<V>(row, joined);
        pixels[2 * i] = joined[0];
        pixels[2 * i + 1] = joined[1];
    }
}

// Some channels of the result, `into` a panel that begins at `first`, in a row of tiles. False: a
// sum is no finite number.
template <class V, class A>
bool join_row(const ConvPiece& piece, const WinogradTiles& tiles, int64_t row,
              const WinogradScratch& at, int64_t first, int64_t into, int64_t channels) {
    const ConvShape& shape = *piece.shape;
    auto* const result = static_cast<float*>(piece.result) + first;
    const auto* const residual = static_cast<const float*>(piece.residual);
    const auto zero = V::set1(0);
    auto nothing = zero;
    for (int64_t c = into; c < into + channels; c += V::width) {
        const int64_t left = into + channels - c, n = left < V::width ? left : V::width;
        const auto scale = ChannelScale<V>::of_vector(piece, first + c, n);
        tiles.for_each_of(row, [&](int64_t tile, int64_t image, int64_t y, int64_t x) {
            const int64_t pixel = image * shape.out_pixels + y * shape.out_width + x;
            typename V::reg pixels[4];
            join_sums<V>(at.sums + tile * winograd_panel + c, at.sum_stride, pixels);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                nothing = V::fma(pixels[i], zero, nothing);
                if (y + i / 2 >= shape.out_height || x + i % 2 >= shape.out_width) continue;
                const int64_t p = pixel + i / 2 * shape.out_width + i % 2;
                const float* const added =
                    residual ? residual + p * shape.residual_pixel + first + c : nullptr;
                store_first<V>(result + p * shape.result_pixel + c,
                               finished<V, A>(piece, scale, pixels[i], added, n), n);
            }
        });
    }
    return V::sum(nothing) == 0;
}

// A panel. What is not finite would spread over its tile: then a row of tiles of a block of
// channels is computed as it is elsewhere. Neither depends on how the work is divided. True: there
// was one, and `at` has been overwritten.
template <class V, class M, class A>
bool join_tiles(const ConvPiece& piece, const WinogradTiles& tiles, const WinogradScratch& at,
                int64_t first, int64_t channels) {
    constexpr int64_t blocks = winograd_panel / last_lanes;
    bool is_finite[most_winograd_tiles][blocks], all_are = true;
    const auto for_blocks = [&](auto f) {
        for (int64_t row = tiles.begin; row < tiles.end; ++row)
            for (int64_t c = 0; c < channels; c += last_lanes) {
                const int64_t left = channels - c, some = left < last_lanes ? left : last_lanes;
                f(row, c, some, is_finite[row - tiles.begin][c / last_lanes]);
            }
    };
    for_blocks([&](int64_t row, int64_t c, int64_t some, bool& finite) {
        finite = join_row<V, A>(piece, tiles, row, at, first, c, some);
        all_are = all_are && finite;
    });
    if (all_are) return false;
    for_blocks([&](int64_t row, int64_t c, int64_t some, bool finite) {
        if (finite) return;
        ConvPiece again = piece;
        again.begin = first + c;
        again.end = again.begin + some;
        again.pixel_begin = tiles.first_pixel(row);
        again.pixel_end = tiles.first_pixel(row + 1);
        conv_last<V, M>(again);
    });
    return true;
}

template <class V, class M, class A>
void winograd_channels(const ConvPiece& piece, const WinogradTiles& tiles,
                       const WinogradScratch& at) {
    constexpr int vectors = most_last_vectors<V>;
    const int64_t depth = piece.shape->channels, panel = vectors * V::width;
    bool is_seen = false;
    for (int64_t first = piece.begin; first < piece.end; first += panel) {
        if (!is_seen) differ_tiles<V>(piece, tiles, at);
        const int64_t left = piece.end - first, channels = left < panel ? left : panel;
        for (int product = 0; product < winograd_products; ++product)
            winograd_vectors<V, M, vectors>(
                {piece,
                 at.seen + product * at.seen_stride,
                 {piece.winograd_weights + product * piece.winograd_stride + first * depth,
                  depth * last_lanes, 0},
                 at.sums + product * at.sum_stride},
                (channels + V::width - 1) / V::width, tiles.count());
        is_seen = !join_tiles<V, M, A>(piece, tiles, at, first, channels);
    }
}

template <class V, class M>
void conv_winograd(const ConvPiece& piece) {
    const WinogradTiles tiles(piece);
    const WinogradScratch at(piece, tiles.count());
    with_activation(piece.finish,
                    [&]<class A>(A*) { winograd_channels<V, M, A>(piece, tiles, at); });
}
