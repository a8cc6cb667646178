// The largest element of each window; a NaN counts as that.

template <class V, class T>
struct LargestWindow {
    using reg = typename V::reg;
    T* result;
    int64_t width;

    reg start() const { return V::set1(-__builtin_inff()); }
    reg step(int64_t, reg largest, reg elements) const { return V::larger(largest, elements); }
    void put(int64_t row, int64_t column, int64_t n, reg largest) const {
        store_first<V>(result + row * width + column, largest, n);
    }
};

template <class V, class T>
void max_pool(const ConvPiece& piece) {
    const ConvShape& shape = *piece.shape;
    auto& at = *static_cast<WindowScratch*>(piece.scratch);
    T* const plane = reinterpret_cast<T*>(static_cast<char*>(piece.scratch) + conv_scratch);
    const Band band(shape, 0, shape.out_pixels);
    band.list_taps(at.taps);
    for (int64_t p = piece.begin; p < piece.end; ++p) {
        const int64_t image = p / shape.out_channels, channel = p - image * shape.out_channels;
        band.copy<V>(
            static_cast<const T*>(piece.x) + image * shape.x_image + channel * shape.x_channel, 1,
            from_float<T>(-__builtin_inff()), plane);
        const LargestWindow<V, T> window{
            static_cast<T*>(piece.result) + image * shape.result_image + channel * shape.out_pixels,
            shape.out_width};
        window_plane<V>(band, plane, at.taps, window);
    }
}
