// The pixels of a piece in panels: where each of their elements is read, and where each of their
// results goes.

// Lanes [lane, lane + count) of a panel are elements from `offset` on.
struct Source {
    int32_t lane, count;
    int64_t offset;
};
// … are pixels from `pixel` on of an image.
struct Target {
    int32_t lane, count;
    int64_t image, pixel;
};

struct PixelPanel {
    int64_t begin, width;  // pixels, from the piece's first
    const Source* sources;
    const Target* targets;
    int64_t source_count, target_count;
};

// So few that a vector of them would be mostly empty: they are multiplied along the depth instead.
constexpr int64_t few_pixels(int64_t lanes) {
    return lanes / 4;
}

// Each pixel is in one source and one target at most.
constexpr int64_t most_panels = conv_pixels / 8 + 2;
struct PixelPanels {
    Source sources[conv_pixels];
    Target targets[conv_pixels];
    PixelPanel all[most_panels];
    int64_t count;

    // PixelPanels of 2 * lanes pixels. Without a band x itself is read.
    void divide(const ConvPiece& piece, int64_t lanes, const Band* band) {
        count = 0;
        Source* source = sources;
        Target* target = targets;
        int64_t width = 0;
        for (int64_t p = piece.pixel_begin; p < piece.pixel_end; p += width) {
            width = least(piece.pixel_end - p, 2 * lanes);
            if (width > lanes && width <= lanes + few_pixels(lanes)) width = lanes;
            PixelPanel& panel = all[count++];
            panel = {p - piece.pixel_begin, width, source, target, 0, 0};
            source = add_sources(*piece.shape, p, width, lanes, band, source);
            target = add_targets(*piece.shape, p, width, lanes, target);
            panel.source_count = source - panel.sources;
            panel.target_count = target - panel.targets;
        }
    }

private:
    static Source* add_sources(const ConvShape& shape, int64_t begin, int64_t width, int64_t lanes,
                               const Band* band, Source* to) {
        const int64_t row_size = band ? shape.out_width : shape.out_pixels;
        for (int64_t lane = 0; lane < width;) {
            const int64_t row = (begin + lane) / row_size, at = begin + lane - row * row_size;
            const int64_t n = least(least(width - lane, lanes), row_size - at);
            const int64_t offset =
                band ? band->of_row(row) + at - band->first_column : row * shape.x_image + at;
            *to++ = {static_cast<int32_t>(lane), static_cast<int32_t>(n), offset};
            lane += n;
        }
        return to;
    }

    static Target* add_targets(const ConvShape& shape, int64_t begin, int64_t width, int64_t lanes,
                               Target* to) {
        for (int64_t lane = 0; lane < width;) {
            const int64_t image = (begin + lane) / shape.out_pixels;
            const int64_t pixel = begin + lane - image * shape.out_pixels;
            const int64_t n = least(least(width - lane, lanes), shape.out_pixels - pixel);
            *to++ = {static_cast<int32_t>(lane), static_cast<int32_t>(n), image, pixel};
            lane += n;
        }
        return to;
    }

    static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
};
