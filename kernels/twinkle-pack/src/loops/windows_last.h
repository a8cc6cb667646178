// Windows that move over images whose channels lie last: vectors of channels, some pixels of a row
// together. What lies beside x is a pixel of the window's own.
//
// W: start(), weight(tap, channel, n), step(weight, so far, elements), put(pixel, channel, n,
//    result).

constexpr int64_t window_pixels = 7;  // of a tile, at most

template <class T>
struct WindowLastScratch {
    const T* seen[most_kernel * most_kernel * window_pixels];  // [tap][pixel]
    // The pixel beside x follows.

    T* beside() { return reinterpret_cast<T*>(this + 1); }
};

template <class V, int pixels, class T, class W>
inline __attribute__((always_inline)) void window_vector(const ConvShape& shape,
                                                         const T* const* seen, const W& window,
                                                         int64_t pixel, int64_t channel,
                                                         int64_t n) {
    typename V::reg result[pixels];
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) result[p] = window.start();
    for (int64_t tap = 0; tap < shape.taps; ++tap) {
        const auto weight = window.weight(tap, channel, n);
#pragma GCC unroll 8
        for (int p = 0; p < pixels; ++p) {
            const auto elements = load_first<V>(seen[tap * window_pixels + p] + channel, n);
            result[p] = window.step(weight, result[p], elements);
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) window.put(pixel + p, channel, n, result[p]);
}

// The same of kernels that are three pixels wide, without gaps: neighbours share what they see, and
// each pixel of x is read once in a row of the kernel.
template <class V, int pixels, int stride, class T, class W>
inline __attribute__((always_inline)) void window_vector_of_three(const ConvShape& shape,
                                                                  const T* const* seen,
                                                                  const W& window, int64_t pixel,
                                                                  int64_t channel) {
    typename V::reg result[pixels];
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) result[p] = window.start();
    for (int64_t tap = 0; tap < shape.taps; tap += 3, seen += 3 * window_pixels) {
        typename V::reg weights[3];
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) weights[j] = window.weight(tap + j, channel, V::width);
#pragma GCC unroll 16
        for (int column = 0; column < (pixels - 1) * stride + 3; ++column) {
            const int first = column / stride < pixels ? column / stride : pixels - 1;
            const auto elements =
                V::load(seen[(column - first * stride) * window_pixels + first] + channel);
#pragma GCC unroll 3
            for (int j = 0; j < 3; ++j)
                if (column >= j && (column - j) % stride == 0 && (column - j) / stride < pixels)
                    result[(column - j) / stride] =
                        window.step(weights[j], result[(column - j) / stride], elements);
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) window.put(pixel + p, channel, V::width, result[p]);
}

template <class V, int pixels, class T, class W>
void window_tile(const ConvPiece& piece, WindowLastScratch<T>& at, const W& window, int64_t row,
                 int64_t column) {
    const ConvShape& shape = *piece.shape;
    const T* const x = static_cast<const T*>(piece.x);
    const int64_t image = row / shape.out_height, y = row - image * shape.out_height;
    const T** to = at.seen;
    for (int64_t i = 0; i < shape.kernel[0]; ++i) {
        const int64_t from = y * shape.stride[0] + i * shape.dilation[0] - shape.padding[0];
        const bool is_row = from >= 0 && from < shape.height;
        const T* const line = x + image * shape.x_image + (is_row ? from * shape.x_row : 0);
        for (int64_t j = 0; j < shape.kernel[1]; ++j, to += window_pixels)
            for (int64_t p = 0; p < pixels; ++p) {
                const int64_t beside =
                    (column + p) * shape.stride[1] + j * shape.dilation[1] - shape.padding[1];
                const bool is_inside = is_row && beside >= 0 && beside < shape.width;
                to[p] = is_inside ? line + beside * shape.x_pixel : at.beside();
            }
    }
    const int64_t pixel = row * shape.out_width + column;
    const bool is_dense = shape.kernel[1] == 3 && shape.dilation[1] == 1;
    int64_t c = piece.begin;
    if (is_dense && shape.stride[1] == 1)
        for (; c + V::width <= piece.end; c += V::width)
            window_vector_of_three<V, pixels, 1>(shape, at.seen, window, pixel, c);
    else if (is_dense && shape.stride[1] == 2)
        for (; c + V::width <= piece.end; c += V::width)
            window_vector_of_three<V, pixels, 2>(shape, at.seen, window, pixel, c);
    else
        for (; c + V::width <= piece.end; c += V::width)
            window_vector<V, pixels>(shape, at.seen, window, pixel, c, V::width);
    if (c < piece.end) window_vector<V, pixels>(shape, at.seen, window, pixel, c, piece.end - c);
}

// Some channels of whole rows of the result, through all images.
template <class V, class T, class W>
void window_rows_last(const ConvPiece& piece, const W& window, float beside) {
    const ConvShape& shape = *piece.shape;
    auto& at = *static_cast<WindowLastScratch<T>*>(piece.scratch);
    for (int64_t c = piece.begin; c < piece.end; ++c) at.beside()[c] = from_float<T>(beside);
    const int64_t rows_end = piece.pixel_end / shape.out_width;
    for (int64_t row = piece.pixel_begin / shape.out_width; row < rows_end; ++row) {
        int64_t column = 0;
        for (; column + 7 <= shape.out_width; column += 7)
            window_tile<V, 7, T>(piece, at, window, row, column);
        for (; column + 3 <= shape.out_width; column += 3)
            window_tile<V, 3, T>(piece, at, window, row, column);
        for (; column < shape.out_width; ++column)
            window_tile<V, 1, T>(piece, at, window, row, column);
    }
}

static_assert(sizeof(WindowLastScratch<float>) <= conv_scratch);

// A convolution that sees one channel each; weights are [tap][channel], in float32.
template <class V, class T, class A>
struct DepthwiseLast {
    using reg = typename V::reg;
    const ConvPiece& piece;
    const float* weights;
    int64_t channels;

    explicit DepthwiseLast(const ConvPiece& of)
        : piece(of), weights(static_cast<const float*>(of.weight)), channels(of.shape->channels) {}

    reg start() const { return V::set1(0); }
    reg weight(int64_t tap, int64_t channel, int64_t n) const {
        return load_first<V>(weights + tap * channels + channel, n);
    }
    reg step(reg weight, reg sum, reg elements) const { return V::fma(weight, elements, sum); }
    void put(int64_t pixel, int64_t channel, int64_t n, reg sum) const {
        const T* residual = static_cast<const T*>(piece.residual);
        if (residual) residual += pixel * piece.shape->residual_pixel + channel;
        T* const to = static_cast<T*>(piece.result) + pixel * channels + channel;
        const auto scale = ChannelScale<V>::of_vector(piece, channel, n);
        store_first<V>(to, finished<V, A, T>(piece, scale, sum, residual, n), n);
    }
};

template <class V, class T>
void depthwise_last(const ConvPiece& piece) {
    with_activation(piece.finish, [&]<class A>(A*) {
        window_rows_last<V, T>(piece, DepthwiseLast<V, T, A>(piece), 0);
    });
}

template <class V, class T>
struct LargestLast {
    using reg = typename V::reg;
    T* result;
    int64_t channels;

    reg start() const { return V::set1(-__builtin_inff()); }
    reg weight(int64_t, int64_t, int64_t) const { return start(); }  // there is none
    reg step(reg, reg largest, reg elements) const { return V::larger(largest, elements); }
    void put(int64_t pixel, int64_t channel, int64_t n, reg largest) const {
        store_first<V>(result + pixel * channels + channel, largest, n);
    }
};

template <class V, class T>
void max_pool_last(const ConvPiece& piece) {
    const LargestLast<V, T> window{static_cast<T*>(piece.result), piece.shape->channels};
    window_rows_last<V, T>(piece, window, -__builtin_inff());
}
