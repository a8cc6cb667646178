// What convolutions where channels lie last ask for before they need it: rows that lie apart, which
// the core does not foresee. Nothing of it is read here.

constexpr int64_t cache_line = 64;

// Rows of the residual, a few of them before each tile.
class RowsAhead {
public:
    RowsAhead() = default;
    RowsAhead(const void* first, int64_t stride, int64_t row_bytes, int64_t count, int64_t tiles)
        : row_(static_cast<const char*>(first)),
          stride_(stride),
          bytes_(row_bytes),
          left_(count),
          each_((count + tiles - 1) / tiles) {}

    void fetch() {
        for (int64_t i = 0; i < each_ && left_ > 0; ++i, --left_, row_ += stride_)
            for (int64_t at = 0; at < bytes_; at += cache_line) __builtin_prefetch(row_ + at, 0, 2);
    }

private:
    const char* row_ = nullptr;
    int64_t stride_ = 0, bytes_ = 0, left_ = 0, each_ = 0;
};

// Channels of pixels that only one tap sees. With fewer bytes of each the core foresees them.
constexpr int64_t least_bytes_ahead = 256;

template <class T>
void fetch_pixels(const T* const* seen, int64_t count, int64_t channel, int64_t channels) {
    constexpr int64_t line = cache_line / static_cast<int64_t>(sizeof(T));
    for (int64_t p = 0; p < count; ++p)
        for (int64_t c = 0; c < channels; c += line)
            __builtin_prefetch(seen[p] + channel + c, 0, 3);
}
