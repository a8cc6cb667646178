// Windows that move over images whose channels lie last: vectors of channels, some pixels of a row
// together. What lies beside x is a pixel of the window's own.
//
// W: start(), weight(tap, channel, n), step(weight, so far, elements), put(pixel, channel, n,
//    result).

constexpr int64_t window_pixels = 7;  // of a tile, at most

template <class T>
struct WindowLastScratch {
    // [tap][pixel]; of kernels that are three pixels wide [row of the kernel][column of x].
    const T* seen[most_kernel * most_kernel * window_pixels];
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

// Columns of x that neighbours see through kernels that are three pixels wide, without gaps.
constexpr int columns_of_three(int pixels, int stride) {
    return (pixels - 1) * stride + 3;
}

// The same of such kernels: each pixel of x is read once in a row of the kernel.
template <class V, int pixels, int stride, class T, class W>
inline __attribute__((always_inline)) void window_vector_of_three(const ConvShape& shape,
                                                                  const T* const* seen,
                                                                  const W& window, int64_t pixel,
                                                                  int64_t channel) {
    constexpr int columns = columns_of_three(pixels, stride);
    typename V::reg result[pixels];
#pragma GCC unroll 8
    for (int p = 0; p < pixels; ++p) result[p] = window.start();
    for (int64_t tap = 0; tap < shape.taps; tap += 3, seen += columns) {
        typename V::reg weights[3];
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) weights[j] = window.weight(tap + j, channel, V::width);
#pragma GCC unroll 16
        for (int column = 0; column < columns; ++column) {
            const auto elements = V::load(seen[column] + channel);
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

// The row of x that a row of the kernel meets; null: it lies beside x.
template <class T>
const T* seen_row(const ConvPiece& piece, int64_t row, int64_t of_kernel) {
    const ConvShape& shape = *piece.shape;
    const int64_t image = row / shape.out_height, y = row - image * shape.out_height;
    const int64_t from = y * shape.stride[0] + of_kernel * shape.dilation[0] - shape.padding[0];
    if (from < 0 || from >= shape.height) return nullptr;
    return static_cast<const T*>(piece.x) + image * shape.x_image + from * shape.x_row;
}

// `count` neighbours, each `step` pixels of x behind the one before.
template <class T>
void list_seen(const ConvShape& shape, const T* line, const T* beside, int64_t first, int64_t step,
               int64_t count, const T** to) {
    const int64_t last = first + (count - 1) * step;
    if (line && first >= 0 && last < shape.width) {
        line += first * shape.x_pixel;
        for (int64_t i = 0; i < count; ++i) to[i] = line + i * step * shape.x_pixel;
        return;
    }
    for (int64_t i = 0; i < count; ++i) {
        const int64_t at = first + i * step;
        to[i] = line && at >= 0 && at < shape.width ? line + at * shape.x_pixel : beside;
    }
}

// What the next tile is the first one to see, a part for each vector of this one.
template <class T>
struct NewColumns {
    const T* rows[2] = {};
    int64_t count = 0, part = 0;  // elements

    NewColumns(const ConvPiece& piece, int64_t row, int64_t column, int64_t pixels, int64_t width)
        : part(pixels * piece.shape->stride[1] * width) {
        const ConvShape& shape = *piece.shape;
        // The first two columns of three were the last ones of this tile, or one with a stride
        // of 2.
        const int64_t first = column * shape.stride[1] - shape.padding[1] + 2;
        if (first < 0 || first + pixels * shape.stride[1] > shape.width) return;
        for (int64_t i = shape.kernel[0] - shape.stride[0]; i < shape.kernel[0]; ++i)
            if (const T* const line = i < 0 || count == 2 ? nullptr : seen_row<T>(piece, row, i))
                rows[count++] = line + first * shape.x_pixel;
    }

    inline __attribute__((always_inline)) void fetch(int64_t vector) const {
        constexpr int64_t line = 64 / static_cast<int64_t>(sizeof(T));
        for (int64_t r = 0; r < count; ++r)
            for (int64_t at = 0; at < part; at += line)
                __builtin_prefetch(rows[r] + vector * part + at, 0, 3);
    }
};

template <class V, int pixels, int stride, class T, class W>
int64_t window_tile_of_three(const ConvPiece& piece, WindowLastScratch<T>& at, const W& window,
                             int64_t row, int64_t column) {
    constexpr int columns = columns_of_three(pixels, stride);
    const ConvShape& shape = *piece.shape;
    for (int64_t i = 0; i < shape.kernel[0]; ++i)
        list_seen<T>(shape, seen_row<T>(piece, row, i), at.beside(),
                     column * stride - shape.padding[1], 1, columns, at.seen + i * columns);
    int64_t c = piece.begin;
    const NewColumns<T> next(piece, row, column + pixels, pixels, V::width);
    for (int64_t vector = 0; c + V::width <= piece.end; c += V::width, ++vector) {
        next.fetch(vector);
        window_vector_of_three<V, pixels, stride>(shape, at.seen, window,
                                                  row * shape.out_width + column, c);
    }
    return c;
}

template <class V, int pixels, class T, class W>
void window_tile(const ConvPiece& piece, WindowLastScratch<T>& at, const W& window, int64_t row,
                 int64_t column) {
    const ConvShape& shape = *piece.shape;
    int64_t c = piece.begin;
    if (shape.kernel[1] == 3 && shape.dilation[1] == 1) {
        if (shape.stride[1] == 1)
            c = window_tile_of_three<V, pixels, 1>(piece, at, window, row, column);
        else if (shape.stride[1] == 2)
            c = window_tile_of_three<V, pixels, 2>(piece, at, window, row, column);
    }
    if (c == piece.end) return;
    const T** to = at.seen;
    for (int64_t i = 0; i < shape.kernel[0]; ++i)
        for (int64_t j = 0; j < shape.kernel[1]; ++j, to += window_pixels)
            list_seen<T>(shape, seen_row<T>(piece, row, i), at.beside(),
                         column * shape.stride[1] + j * shape.dilation[1] - shape.padding[1],
                         shape.stride[1], pixels, to);
    const int64_t pixel = row * shape.out_width + column;
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
