// Convolutions that see one channel each. A plane is copied with its padding written out; then
// vectors along its rows are multiplied by one weight at a time, several rows together.

template <class V, class T, class A, int rows>
inline void depthwise_rows(const ConvPiece& piece, const Band& band, const T* plane,
                           const int64_t* taps, const float* weights, int64_t channel,
                           int64_t image, int64_t y) {
    const ConvShape& shape = *piece.shape;
    T* const result = static_cast<T*>(piece.result) + image * shape.result_image +
                      channel * shape.out_pixels;
    const T* const residual = piece.residual ? static_cast<const T*>(piece.residual) +
                                                   image * shape.residual_image +
                                                   channel * shape.residual_channel
                                             : nullptr;
    const int64_t count = shape.taps;
    const ChannelScale<V> scale(piece, channel);
    for (int64_t x = 0; x < shape.out_width; x += V::width) {
        const T* const from = plane + y * band.pitch + x;
        typename V::reg sums[rows];
        for (int r = 0; r < rows; ++r) sums[r] = V::set1(0);
        for (int64_t k = 0; k < count; ++k) {
            const auto weight = V::set1(weights[k]);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
                sums[r] = V::fma(weight, V::load(from + taps[k] + r * band.pitch), sums[r]);
        }
        const int64_t left = shape.out_width - x, n = left < V::width ? left : V::width;
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const int64_t pixel = (y + r) * shape.out_width + x;
            store_first<V>(result + pixel,
                           finished<V, A, T>(piece, scale, sums[r],
                                             residual ? residual + pixel : nullptr, n),
                           n);
        }
    }
}

template <class V, class T, class A>
void depthwise_plane(const ConvPiece& piece, const Band& band, const T* plane, const int64_t* taps,
                     const float* weights, int64_t channel, int64_t image) {
    int64_t y = 0;
    for (; y + 8 <= piece.shape->out_height; y += 8)
        depthwise_rows<V, T, A, 8>(piece, band, plane, taps, weights, channel, image, y);
    for (; y + 4 <= piece.shape->out_height; y += 4)
        depthwise_rows<V, T, A, 4>(piece, band, plane, taps, weights, channel, image, y);
    for (; y < piece.shape->out_height; ++y)
        depthwise_rows<V, T, A, 1>(piece, band, plane, taps, weights, channel, image, y);
}

struct DepthwiseScratch {
    int64_t taps[most_kernel * most_kernel];
    float weights[most_kernel * most_kernel];
    // The plane follows, and what a vector may read beyond it.
};
static_assert(sizeof(DepthwiseScratch) <= conv_scratch);

template <class V, class T>
void conv_depthwise(const ConvPiece& piece) {
    const ConvShape& shape = *piece.shape;
    auto& at = *static_cast<DepthwiseScratch*>(piece.scratch);
    T* const plane = reinterpret_cast<T*>(static_cast<char*>(piece.scratch) + conv_scratch);
    const Band band(shape, 0, shape.out_pixels);
    const int64_t each = shape.out_channels / shape.channels;
    for (int64_t i = 0; i < shape.kernel[0]; ++i)
        for (int64_t j = 0; j < shape.kernel[1]; ++j)
            at.taps[i * shape.kernel[1] + j] = band.of_tap(i, j);
    int64_t copied = -1;
    for (int64_t p = piece.begin; p < piece.end; ++p) {
        const int64_t image = p / shape.out_channels, channel = p - image * shape.out_channels;
        const int64_t from = image * shape.channels + channel / each;
        if (from != copied)
            band.copy<V>(static_cast<const T*>(piece.x) + image * shape.x_image +
                          channel / each * shape.x_channel,
                      1, plane);
        copied = from;
        const T* const weight = static_cast<const T*>(piece.weight) + channel * shape.taps;
        for (int64_t k = 0; k < shape.taps; ++k) at.weights[k] = to_float(weight[k]);
        with_activation(piece.finish, [&]<class A>(A*) {
            depthwise_plane<V, T, A>(piece, band, plane, at.taps, at.weights, channel, image);
        });
    }
}
