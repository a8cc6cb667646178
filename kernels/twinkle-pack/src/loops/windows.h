// Windows that move over planes of an image: of each channel by itself. A plane is copied with its
// padding written out (loops/conv_band.h); then vectors along its rows meet one tap at a time,
// several rows together.
//
// W: start(), step(k, so far, elements) for the tap k, put(row, column, n, result).

struct WindowScratch {
    int64_t taps[most_kernel * most_kernel];
    float weights[most_kernel * most_kernel];
    // The plane follows, and what a vector may read beyond it.
};
static_assert(sizeof(WindowScratch) <= conv_scratch);

template <class V, class T, int rows, class W>
inline void window_rows(const Band& band, const T* from, const int64_t* taps, const W& window,
                        typename V::reg (&result)[rows]) {
    for (int64_t k = 0; k < band.shape.taps; ++k)
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
            result[r] = window.step(k, result[r], V::load(from + taps[k] + r * band.pitch));
}

// The same for windows of three rows that move by one: each row is read once for all of them.
template <class V, class T, int rows, class W>
inline void window_rows_of_three(const Band& band, const T* from, const W& window,
                                 typename V::reg (&result)[rows]) {
    const int64_t columns = band.shape.kernel[1];
    for (int64_t j = 0; j < columns; ++j) {
        const T* const column =
            from + band.across.phase[j] * band.phase_size + band.across.offset[j];
#pragma GCC unroll 16
        for (int i = 0; i < rows + 2; ++i) {
            const auto elements = V::load(column + i * band.pitch);
#pragma GCC unroll 3
            for (int tap = 0; tap < 3; ++tap)
                if (const int r = i - tap; r >= 0 && r < rows)
                    result[r] = window.step(tap * columns + j, result[r], elements);
        }
    }
}

template <class V, class T, int rows, class W>
inline void window_block(const Band& band, const T* plane, const int64_t* taps, const W& window,
                         int64_t y) {
    const ConvShape& shape = band.shape;
    const bool is_three = shape.kernel[0] == 3 && shape.stride[0] == 1 && shape.dilation[0] == 1;
    for (int64_t x = 0; x < shape.out_width; x += V::width) {
        const T* const from = plane + y * band.pitch + x;
        typename V::reg result[rows];
        for (int r = 0; r < rows; ++r) result[r] = window.start();
        if (is_three && rows > 1)
            window_rows_of_three<V, T, rows>(band, from, window, result);
        else
            window_rows<V, T, rows>(band, from, taps, window, result);
        const int64_t left = shape.out_width - x, n = left < V::width ? left : V::width;
        for (int r = 0; r < rows; ++r) window.put(y + r, x, n, result[r]);
    }
}

template <class V, class T, class W>
void window_plane(const Band& band, const T* plane, const int64_t* taps, const W& window) {
    int64_t y = 0;
    const int64_t height = band.shape.out_height;
    for (; y + 7 <= height; y += 7) window_block<V, T, 7>(band, plane, taps, window, y);
    for (; y + 3 <= height; y += 3) window_block<V, T, 3>(band, plane, taps, window, y);
    for (; y < height; ++y) window_block<V, T, 1>(band, plane, taps, window, y);
}
