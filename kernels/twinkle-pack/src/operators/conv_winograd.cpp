#include "operators/conv_winograd.h"

#include <algorithm>

#include "operators/conv_grid.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

constexpr int64_t vector = 16, most_vectors = 4;  // channels of a unit
constexpr int64_t products = winograd_products;

int64_t halves(int64_t size) {
    return (size + 1) / 2;
}

// What a thread keeps of a tile, and may keep of all of a piece, which has whole rows of them.
int64_t tile_bytes(const ConvShape& shape) {
    return products * (shape.channels + vector * most_vectors) * 4;
}
constexpr int64_t most_bytes = int64_t{8} << 20;

struct Work {
    ConvPiece whole;
    Conv weights, compute;
    ConvGrid grid;
    int64_t scratch_bytes;

    // Blocks of sixteen channels.
    static void run_weights(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        ConvPiece piece = work.whole;
        piece.scratch = scratch(work.scratch_bytes);
        piece.begin = begin * vector;
        piece.end = std::min(end * vector, piece.shape->out_channels);
        work.weights(piece);
    }

    // The pixels of rows [begin, end) of tiles, through all images.
    void place(int64_t begin, int64_t end, ConvPiece& piece) const {
        const ConvShape& shape = *whole.shape;
        const int64_t down = halves(shape.out_height);
        const auto pixel = [&](int64_t row) {
            const int64_t image = row / down, y = (row - image * down) * 2;
            return (image * shape.out_height + y) * shape.out_width;
        };
        piece.pixel_begin = pixel(begin);
        piece.pixel_end = pixel(std::min(end, shape.images * down));
    }

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const int64_t units = work.grid.units;
        const int64_t rows = work.grid.pixels_each / halves(work.whole.shape->out_width);
        ConvPiece piece = work.whole;
        piece.scratch = scratch(work.scratch_bytes);
        while (begin < end) {
            const int64_t block = begin / units, first = begin - block * units;
            const int64_t last = std::min(units, first + end - begin);
            work.place(block * rows, (block + 1) * rows, piece);
            piece.begin = work.grid.first_channel(first, vector);
            piece.end =
                std::min(work.grid.first_channel(last, vector), work.whole.shape->out_channels);
            work.compute(piece);
            begin += last - first;
        }
    }
};

}  // namespace

bool is_winograd(const ConvCall& call) {
    const ConvShape& shape = call.shape;
    for (int d = 0; d < 2; ++d)
        if (shape.kernel[d] != 3 || shape.stride[d] != 1 || shape.dilation[d] != 1) return false;
    const int64_t pixels = shape.images * shape.out_pixels;
    return row_functions().conv_winograd && call.groups == 1 && !shape.is_patched &&
           pixels >= rules::winograd_least_pixels &&
           tile_bytes(shape) * halves(shape.out_width) <= most_bytes &&
           pixels * shape.depth * shape.out_channels >= rules::winograd_least_products;
}

void compute_winograd(ConvPiece whole, ParallelFor parallel) {
    const ConvShape& shape = *whole.shape;
    const int64_t across = halves(shape.out_width), down = halves(shape.out_height);
    const int64_t depth = shape.channels, blocks = (shape.out_channels + vector - 1) / vector;
    const int64_t most_tiles = std::min(most_winograd_tiles, most_bytes / tile_bytes(shape));
    Work work{};
    work.grid =
        divide({shape.images * down * across, across, most_tiles, shape.out_channels, vector,
                most_vectors, 1, products * depth * shape.out_channels, parallel.threads});
    const int64_t tiles = work.grid.pixels_each;
    whole.most_pixels = 4 * tiles;
    const int64_t otherwise = shape.taps * whole.most_pixels * 8 + depth * 4;
    const int64_t floats =
        depth + vector + products * (tiles * (depth + vector * most_vectors) + 2 * vector);
    work.scratch_bytes = conv_scratch + std::max(otherwise, floats * 4);
    whole.winograd_stride = blocks * depth * vector + vector;
    whole.winograd_weights =
        static_cast<float*>(call_scratch(products * whole.winograd_stride * 4));
    work.whole = whole;
    work.weights = row_functions().winograd_weights;
    work.compute = row_functions().conv_winograd;
    parallel(blocks, conv_units_for(products * depth * vector), Work::run_weights, &work);
    parallel(work.grid.blocks * work.grid.units,
             conv_units_for(products * tiles * depth * shape.out_channels / work.grid.units),
             Work::run, &work);
}

}  // namespace twinkle_pack
