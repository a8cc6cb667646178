// Convolutions that see one channel each.

template <class V, class T, class A>
struct DepthwiseWindow {
    using reg = typename V::reg;
    const ConvPiece& piece;
    ChannelScale<V> scale;
    const float* weights;
    T* result;
    const T* residual;  // null: none

    DepthwiseWindow(const ConvPiece& of, const float* with, int64_t image, int64_t channel)
        : piece(of),
          scale(of, channel),
          weights(with),
          result(static_cast<T*>(of.result) + image * of.shape->result_image +
                 channel * of.shape->out_pixels),
          residual(of.residual
                       ? static_cast<const T*>(of.residual) + image * of.shape->residual_image +
                             channel * of.shape->residual_channel
                       : nullptr) {}

    reg start() const { return V::set1(0); }
    reg step(int64_t k, reg sum, reg elements) const {
        return V::fma(V::set1(weights[k]), elements, sum);
    }
    void put(int64_t row, int64_t column, int64_t n, reg sum) const {
        const int64_t pixel = row * piece.shape->out_width + column;
        store_first<V>(
            result + pixel,
            finished<V, A, T>(piece, scale, sum, residual ? residual + pixel : nullptr, n), n);
    }
};

template <class V, class T>
void conv_depthwise(const ConvPiece& piece) {
    const ConvShape& shape = *piece.shape;
    auto& at = *static_cast<WindowScratch*>(piece.scratch);
    T* const plane = reinterpret_cast<T*>(static_cast<char*>(piece.scratch) + conv_scratch);
    const Band band(shape, 0, shape.out_pixels);
    const int64_t each = shape.out_channels / shape.channels;
    band.list_taps(at.taps);
    int64_t copied = -1;
    for (int64_t p = piece.begin; p < piece.end; ++p) {
        const int64_t image = p / shape.out_channels, channel = p - image * shape.out_channels;
        const int64_t from = image * shape.channels + channel / each;
        if (from != copied)
            band.copy<V>(static_cast<const T*>(piece.x) + image * shape.x_image +
                             channel / each * shape.x_channel,
                         1, T{}, plane);
        copied = from;
        const T* const weight = static_cast<const T*>(piece.weight) + channel * shape.taps;
        for (int64_t k = 0; k < shape.taps; ++k) at.weights[k] = to_float(weight[k]);
        with_activation(piece.finish, [&]<class A>(A*) {
            const DepthwiseWindow<V, T, A> window(piece, at.weights, image, channel);
            window_plane<V>(band, plane, at.taps, window);
        });
    }
}
