#include "operators/conv_tiles.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "operators/conv_grid.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

constexpr int64_t element = 2;  // bytes of a bfloat16

// x with its padding, in as many images as strides have offsets ("phases"): what pixels of the
// result see at a tap lies side by side in one of them.
//     [image][phase down][phase across][row][column][channel]
struct Phases {
    const ConvShape& shape;
    int64_t rows, columns;  // of a phase

    explicit Phases(const ConvShape& of)
        : shape(of), rows(along(0, of.height)), columns(along(1, of.width)) {}

    int64_t along(int d, int64_t size) const {
        return (size + 2 * shape.padding[d] - 1) / shape.stride[d] + 1;
    }
    int64_t pixel_bytes() const { return shape.channels * element; }
    int64_t row_bytes() const { return columns * pixel_bytes(); }
    int64_t image_rows() const { return shape.stride[0] * shape.stride[1] * rows; }
    double bytes() const {
        return static_cast<double>(shape.images * image_rows()) * static_cast<double>(row_bytes());
    }

    int64_t phase(int64_t down, int64_t across) const { return down * shape.stride[1] + across; }
    // Bytes from the first phase's begin.
    int64_t tap(int64_t i, int64_t j) const {
        const int64_t y = i * shape.dilation[0], x = j * shape.dilation[1];
        const int64_t of = phase(y % shape.stride[0], x % shape.stride[1]);
        return (of * rows + y / shape.stride[0]) * row_bytes() +
               x / shape.stride[1] * pixel_bytes();
    }
};

// Copies rows of the phases that taps see.
struct Copy {
    Phases phases;
    const char* x;
    char* to;
    std::vector<char> is_seen;  // by phase

    Copy(const Phases& all, const void* from, void* into)
        : phases(all), x(static_cast<const char*>(from)), to(static_cast<char*>(into)) {
        const ConvShape& shape = phases.shape;
        is_seen.resize(static_cast<size_t>(shape.stride[0] * shape.stride[1]));
        for (int64_t i = 0; i < shape.kernel[0]; ++i)
            for (int64_t j = 0; j < shape.kernel[1]; ++j)
                is_seen[static_cast<size_t>(
                    phases.phase(i * shape.dilation[0] % shape.stride[0],
                                 j * shape.dilation[1] % shape.stride[1]))] = true;
    }

    void row(int64_t index) const {
        const ConvShape& shape = phases.shape;
        const int64_t image = index / phases.image_rows();
        const int64_t of_image = index - image * phases.image_rows();
        const int64_t phase = of_image / phases.rows, q = of_image - phase * phases.rows;
        if (!is_seen[static_cast<size_t>(phase)]) return;
        const int64_t down = phase / shape.stride[1], across = phase - down * shape.stride[1];
        const int64_t y = q * shape.stride[0] + down - shape.padding[0];
        char* at = to + index * phases.row_bytes();
        const auto size = static_cast<size_t>(phases.pixel_bytes());
        for (int64_t c = 0; c < phases.columns; ++c, at += size) {
            const int64_t column = c * shape.stride[1] + across - shape.padding[1];
            if (y >= 0 && y < shape.height && column >= 0 && column < shape.width)
                std::memcpy(at,
                            x + element * (image * shape.x_image + y * shape.x_row +
                                           column * shape.x_pixel),
                            size);
            else
                std::memset(at, 0, size);
        }
    }
    static void run(int64_t begin, int64_t end, void* context) {
        const Copy& copy = *static_cast<const Copy*>(context);
        for (int64_t r = begin; r < end; ++r) copy.row(r);
    }
};

// From pixel to pixel, through all rows and images, in elements. Zero: they do not lie like that.
int64_t pixel_stride(const ConvShape& shape) {
    const int64_t pixel = shape.width > 1    ? shape.x_pixel
                          : shape.height > 1 ? shape.x_row
                          : shape.images > 1 ? shape.x_image
                                             : shape.channels;
    const bool are_rows = shape.height == 1 || shape.x_row == pixel * shape.width;
    const bool are_images =
        shape.images == 1 || shape.x_image == pixel * shape.width * shape.height;
    return are_rows && are_images ? pixel : 0;
}

bool is_read_in_place(const ConvShape& shape) {
    return shape.taps == 1 && shape.stride[0] == 1 && shape.stride[1] == 1 &&
           shape.padding[0] == 0 && shape.padding[1] == 0 && pixel_stride(shape) > 0;
}

struct Work {
    ConvTiles whole;
    ConvPiece piece;
    ConvByTiles compute;
    ConvGrid grid;
    int64_t blocks;  // of positions

    static constexpr int64_t most_units = 8, lanes = last_lanes;

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const int64_t units = work.grid.units, each = work.grid.pixels_each / tile_positions;
        while (begin < end) {
            const int64_t row = begin / units, first = begin - row * units;
            const int64_t last = std::min(units, first + end - begin);
            ConvPiece piece = work.piece;
            piece.begin = work.grid.first_channel(first, lanes);
            piece.end = work.grid.first_channel(last, lanes);
            piece.scratch = scratch(conv_tiles_scratch);
            ConvTiles tiles = work.whole;
            tiles.piece = &piece;
            tiles.begin = row * each;
            tiles.end = std::min(tiles.begin + each, work.blocks);
            work.compute(tiles);
            begin += last - first;
        }
    }
};

// All pixels are one row of one image.
ConvTiles in_place(const ConvShape& shape, const void* x, std::vector<int64_t>& taps) {
    taps = {0};
    const int64_t pixels = shape.images * shape.out_pixels;
    ConvTiles tiles{};
    tiles.x = static_cast<const char*>(x);
    tiles.pixel = pixel_stride(shape) * element;
    tiles.rows = 1;
    tiles.positions = tiles.pitch = tiles.width = pixels;
    return tiles;
}

ConvTiles copied(const ConvShape& shape, const void* x, std::vector<int64_t>& taps,
                 ParallelFor parallel) {
    const Phases phases(shape);
    Copy copy(phases, x, call_scratch(static_cast<int64_t>(phases.bytes())));
    parallel(shape.images * phases.image_rows(),
             std::max<int64_t>(1, rules::grain_elements * element / phases.row_bytes()), Copy::run,
             &copy);
    for (int64_t i = 0; i < shape.kernel[0]; ++i)
        for (int64_t j = 0; j < shape.kernel[1]; ++j) taps.push_back(phases.tap(i, j));
    ConvTiles tiles{};
    tiles.x = copy.to;
    tiles.pixel = phases.pixel_bytes();
    tiles.image = phases.image_rows() * phases.row_bytes();
    tiles.pitch = phases.columns;
    tiles.rows = shape.out_height;
    tiles.width = shape.out_width;
    tiles.positions = (tiles.rows - 1) * tiles.pitch + tiles.width;
    return tiles;
}

}  // namespace

bool fits_tiles(const ConvShape& shape, int64_t group) {
    const int64_t groups = shape.channels / group, of_tile = tile_channels / group;
    return shape.channels % tile_channels == 0 &&
           last_slab_channels(groups, shape.taps) % of_tile == 0;
}

bool fits_tiles(const ConvCall& call, int64_t group) {
    const ConvShape& shape = call.shape;
    if (shape.weight_block == 0 || !fits_tiles(shape, group)) return false;
    const auto bytes = [&](int64_t pixels, int64_t channels) {
        return static_cast<double>(shape.images * pixels) * static_cast<double>(channels * element);
    };
    constexpr double most_times = 4;
    return Phases(shape).bytes() <=
           most_times * (bytes(shape.height * shape.width, shape.channels) +
                         bytes(shape.out_pixels, shape.out_channels));
}

void compute_conv_tiles(const ConvCall& call, const ConvPiece& piece, ConvByTiles compute,
                        ParallelFor parallel) {
    const ConvShape& shape = call.shape;
    std::vector<int64_t> taps;
    Work work{};
    work.whole = is_read_in_place(shape) ? in_place(shape, piece.x, taps)
                                         : copied(shape, piece.x, taps, parallel);
    work.whole.taps = taps.data();
    work.piece = piece;
    work.compute = compute;
    const int64_t images = is_read_in_place(shape) ? 1 : shape.images;
    work.blocks = images * tile_blocks(work.whole.positions);
    work.grid = divide({work.blocks * tile_positions, tile_positions, conv_pixels,
                        shape.out_channels, Work::lanes, Work::most_units, 1,
                        shape.depth * shape.out_channels, parallel.threads});
    const int64_t products = shape.depth * shape.out_channels / work.grid.units;
    parallel(work.grid.blocks * work.grid.units, conv_units_for(products * work.grid.pixels_each),
             Work::run, &work);
}

}  // namespace twinkle_pack
