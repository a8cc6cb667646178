// What pixels of a convolution see of x, where channels lie last: for each tap and pixel of a piece
// where its channels begin. What lies beside x is a pixel of zeros.

// Behind ConvPiece::scratch's fixed part.
template <class T>
struct LastPixels {
    float* sums;     // if they do not wait in the result: [pixel of the piece][channel of a group]
    const T** seen;  // [tap][pixel of the piece]
    int64_t stride;  // from tap to tap
    T *zeros, *patches;

    explicit LastPixels(const ConvPiece& piece)
        : sums(reinterpret_cast<float*>(static_cast<char*>(piece.scratch) + conv_scratch)),
          stride(piece.most_pixels) {
        const ConvShape& shape = *piece.shape;
        constexpr int64_t waiting = sizeof(T) == 4 ? 0 : most_last_group;
        seen = reinterpret_cast<const T**>(sums + waiting * stride);
        zeros = reinterpret_cast<T*>(seen + (shape.is_patched ? 1 : shape.taps) * stride);
        patches = zeros + shape.channels;
    }
};

template <class T>
void list_pixels(const ConvPiece& piece, const LastPixels<T>& pixels) {
    const ConvShape& shape = *piece.shape;
    const int64_t count = piece.pixel_end - piece.pixel_begin;
    const T* const x = static_cast<const T*>(piece.x);
    for (int64_t c = 0; c < shape.channels; ++c) pixels.zeros[c] = T{};
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
            const T** const to = pixels.seen + tap * pixels.stride + done;
            const bool is_row = from >= 0 && from < shape.height;
            const T* const line = x + image * shape.x_image + (is_row ? from * shape.x_row : 0);
            for (int64_t p = 0; p < n; ++p) {
                const int64_t at = (column + p) * shape.stride[1] + first;
                const bool is_inside = is_row && at >= 0 && at < shape.width;
                to[p] = is_inside ? line + at * shape.x_pixel : pixels.zeros;
            }
        }
        done += n;
    }
}

// What each pixel sees of x, one after the other: where x has too few channels to be read along
// them. In the order of the weights, and whole groups of them.
template <class V, int64_t per_group, class T>
void copy_patches(const ConvPiece& piece, const LastPixels<T>& pixels) {
    const ConvShape& shape = *piece.shape;
    const T* const x = static_cast<const T*>(piece.x);
    const int64_t across = shape.kernel[1];
    const int64_t depth = (shape.depth + per_group - 1) / per_group * per_group;
    for (int64_t p = piece.pixel_begin; p < piece.pixel_end; ++p) {
        const int64_t row = p / shape.out_width, image = row / shape.out_height;
        const int64_t top = (row - image * shape.out_height) * shape.stride[0] - shape.padding[0];
        const int64_t left = (p - row * shape.out_width) * shape.stride[1] - shape.padding[1];
        T* to = pixels.patches + (p - piece.pixel_begin) * depth;
        pixels.seen[p - piece.pixel_begin] = to;
        const bool is_inside = left >= 0 && left + (across - 1) * shape.dilation[1] < shape.width;
        for (int64_t c = 0; c < shape.channels; ++c)
            for (int64_t i = 0; i < shape.kernel[0]; ++i, to += across) {
                const int64_t y = top + i * shape.dilation[0];
                const bool is_row = y >= 0 && y < shape.height;
                const T* const from = x + image * shape.x_image + c * shape.x_channel +
                                      (is_row ? y * shape.x_row + left * shape.x_pixel : 0);
                const int64_t step = shape.dilation[1] * shape.x_pixel;
                // The next row overwrites what is too much.
                if (is_row && left >= 0 && step == 1 && across <= V::width &&
                    left + V::width <= shape.width) {
                    V::store(to, V::load(from));
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
        for (int64_t k = shape.depth; k < depth; ++k) *to++ = T{};
    }
}
