#include "operators/conv_tiles.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "operators/conv_grid.h"
#include "operators/conv_prepack.h"
#include "operators/few_channels.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

constexpr int64_t element = 2;  // bytes of a bfloat16
constexpr auto dtype = DType::bfloat16;

// Groups of channels that each tile has: as many as divide those of a slab. 0: too few.
int64_t groups_of_tile(const ConvShape& shape, int64_t group) {
    constexpr int64_t least = 3;
    if (shape.channels % group != 0) return 0;
    const int64_t groups = shape.channels / group;
    const int64_t each = last_slab_channels(groups, shape.taps);
    if (groups % each != 0) return 0;
    for (int64_t some = tile_channels / group; some >= least; --some)
        if (each % some == 0) return some;
    return 0;
}

// x with its padding, in as many images as there are offsets of taps within a stride ("phases"):
// what pixels of the result see at a tap lies side by side in one of them.
//     [image][phase][row][column][channel]
class Phases {
public:
    explicit Phases(const ConvShape& shape)
        : shape_(shape), rows_(along(0, shape.height)), columns_(along(1, shape.width)) {
        places_.resize(static_cast<size_t>(shape.stride[0] * shape.stride[1]), -1);
        for (int64_t i = 0; i < shape.kernel[0]; ++i)
            for (int64_t j = 0; j < shape.kernel[1]; ++j)
                if (int64_t& place = places_[offset(i, j)]; place < 0) {
                    place = count();
                    offsets_.push_back(static_cast<int64_t>(offset(i, j)));
                }
    }

    int64_t columns() const { return columns_; }
    int64_t pixel_bytes() const { return shape_.channels * element; }
    int64_t row_bytes() const { return columns_ * pixel_bytes(); }
    int64_t image_rows() const { return count() * rows_; }
    double image_bytes() const {
        return static_cast<double>(image_rows()) * static_cast<double>(row_bytes());
    }

    // Bytes from the first position to what it sees at a tap.
    int64_t tap(int64_t i, int64_t j) const {
        const int64_t row = i * shape_.dilation[0] / shape_.stride[0];
        return (places_[offset(i, j)] * rows_ + row) * row_bytes() +
               j * shape_.dilation[1] / shape_.stride[1] * pixel_bytes();
    }

    // One row of an image; `index` counts the rows of all of its phases.
    void copy(const char* x, int64_t image, int64_t index, char* to) const {
        const int64_t image_row = index % rows_;
        const int64_t phase = offsets_[static_cast<size_t>(index / rows_)];
        const int64_t down = phase / shape_.stride[1], across = phase % shape_.stride[1];
        copy_row(x + element * image * shape_.x_image,
                 image_row * shape_.stride[0] + down - shape_.padding[0],
                 across - shape_.padding[1], to);
    }

private:
    int64_t count() const { return static_cast<int64_t>(offsets_.size()); }
    int64_t along(int d, int64_t size) const {
        return (size + 2 * shape_.padding[d] - 1) / shape_.stride[d] + 1;
    }
    size_t offset(int64_t i, int64_t j) const {
        const int64_t down = i * shape_.dilation[0] % shape_.stride[0];
        const int64_t across = j * shape_.dilation[1] % shape_.stride[1];
        return static_cast<size_t>(down * shape_.stride[1] + across);
    }
    // Every stride-th pixel of a row of x, from a column on.
    void copy_row(const char* image, int64_t row, int64_t column, char* to) const {
        const bool is_row = row >= 0 && row < shape_.height;
        const auto size = static_cast<size_t>(pixel_bytes());
        for (int64_t c = 0; c < columns_; ++c, to += size, column += shape_.stride[1])
            if (is_row && column >= 0 && column < shape_.width)
                std::memcpy(to, image + element * (row * shape_.x_row + column * shape_.x_pixel),
                            size);
            else
                std::memset(to, 0, size);
    }

    const ConvShape& shape_;
    int64_t rows_, columns_;        // of a phase
    std::vector<int64_t> places_;   // of each offset; none: -1
    std::vector<int64_t> offsets_;  // of each phase
};

struct Copy {
    const Phases& phases;
    const char* x;
    char* to;

    static void run(int64_t begin, int64_t end, void* context) {
        const Copy& copy = *static_cast<const Copy*>(context);
        const int64_t rows = copy.phases.image_rows();
        for (int64_t r = begin; r < end; ++r)
            copy.phases.copy(copy.x, r / rows, r % rows, copy.to + r * copy.phases.row_bytes());
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

    void compute_images(int64_t images, ParallelFor parallel) {
        const ConvShape& shape = *piece.shape;
        blocks = images * tile_blocks(whole.positions);
        grid = divide({blocks * tile_positions, tile_positions, most_tile_blocks * tile_positions,
                       shape.out_channels, lanes, most_units, 1, shape.depth * shape.out_channels,
                       parallel.threads});
        const int64_t products = shape.depth * shape.out_channels / grid.units;
        parallel(grid.blocks * grid.units, conv_units_for(products * grid.pixels_each), run, this);
    }
    void skip_pixels(int64_t count) {
        const ConvShape& shape = *piece.shape;
        piece.result = static_cast<char*>(piece.result) + element * count * shape.result_pixel;
        if (piece.residual)
            piece.residual =
                static_cast<const char*>(piece.residual) + element * count * shape.residual_pixel;
    }

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
void compute_in_place(Work& work, const ConvShape& shape, ParallelFor parallel) {
    constexpr int64_t taps[] = {0};
    work.whole.x = static_cast<const char*>(work.piece.x);
    work.whole.taps = taps;
    work.whole.pixel = pixel_stride(shape) * element;
    work.whole.rows = 1;
    work.whole.positions = work.whole.pitch = work.whole.width = shape.images * shape.out_pixels;
    work.compute_images(1, parallel);
}

// Some images after the other, so that the copy stays in a cache.
void compute_copied(Work& work, const ConvShape& shape, ParallelFor parallel) {
    const Phases phases(shape);
    std::vector<int64_t> taps;
    for (int64_t i = 0; i < shape.kernel[0]; ++i)
        for (int64_t j = 0; j < shape.kernel[1]; ++j) taps.push_back(phases.tap(i, j));
    const int64_t bytes = phases.image_rows() * phases.row_bytes();
    constexpr int64_t bytes_of_thread = int64_t{2} << 20;
    const int64_t fitting = bytes_of_thread * std::max<int64_t>(1, parallel.threads) / bytes;
    const int64_t most = std::clamp<int64_t>(fitting, 1, shape.images);
    Copy copy{phases, static_cast<const char*>(work.piece.x),
              static_cast<char*>(call_scratch(most * bytes))};
    work.whole.x = copy.to;
    work.whole.taps = taps.data();
    work.whole.pixel = phases.pixel_bytes();
    work.whole.image = bytes;
    work.whole.pitch = phases.columns();
    work.whole.rows = shape.out_height;
    work.whole.width = shape.out_width;
    work.whole.positions = (shape.out_height - 1) * phases.columns() + shape.out_width;
    for (int64_t first = 0; first < shape.images; first += most) {
        const int64_t images = std::min(most, shape.images - first);
        parallel(images * phases.image_rows(),
                 std::max<int64_t>(1, rules::grain_elements * element / phases.row_bytes()),
                 Copy::run, &copy);
        work.compute_images(images, parallel);
        copy.x += element * most * shape.x_image;
        work.skip_pixels(most * shape.out_pixels);
    }
}

bool is_small_copy(const ConvShape& shape) {
    const auto bytes = [&](int64_t pixels, int64_t channels) {
        return static_cast<double>(pixels) * static_cast<double>(channels * element);
    };
    constexpr double most_times = 4, always = 1 << 20;
    return is_read_in_place(shape) ||
           Phases(shape).image_bytes() <=
               always + most_times * (bytes(shape.height * shape.width, shape.channels) +
                                      bytes(shape.out_pixels, shape.out_channels));
}

}  // namespace

bool fits_tiles(const ConvShape& shape, int64_t group) {
    return groups_of_tile(shape, group) > 0;
}

bool fits_tiles(const ConvCall& call, int64_t group) {
    return call.shape.weight_block != 0 && fits_tiles(call.shape, group) &&
           is_small_copy(call.shape);
}

void compute_conv_tiles(const ConvCall& call, const ConvPiece& piece, int64_t group,
                        ConvByTiles compute, ParallelFor parallel) {
    Work work{};
    work.piece = piece;
    work.compute = compute;
    work.whole.groups = groups_of_tile(call.shape, group);
    work.whole.out_channels = call.shape.result_pixel;  // those of the shape may be rounded up
    if (is_read_in_place(call.shape))
        compute_in_place(work, call.shape, parallel);
    else
        compute_copied(work, call.shape, parallel);
}

// Where 32 does not divide x's channels, vectors are the other way, which copy the weight in each
// call, too. Where it does, LibTorch is; it lays weights out faster (the border is an estimate).
bool is_laid_in_call(const ConvCall& call, int64_t group) {
    const ConvShape& shape = call.shape;
    constexpr int64_t least_pixels = 64, weights_of_pixel = 16;
    if (shape.weight_block != 0 || call.groups != 1 || shape.is_patched) return false;
    if (groups_of_tile(shape, group) == 0) return false;
    const int64_t pixels = shape.images * shape.out_pixels;
    if (pixels < least_pixels || !is_small_copy(shape)) return false;
    return shape.channels % tile_channels != 0 ||
           shape.depth * shape.out_channels <= weights_of_pixel * pixels;
}

void compute_laid_conv_tiles(ConvCall& call, ConvPiece piece, int64_t group, ConvByTiles compute,
                             ParallelFor parallel) {
    ConvShape& shape = call.shape;
    const int64_t count = shape.out_channels * shape.depth;
    shape.out_channels = (shape.out_channels + last_lanes - 1) / last_lanes * last_lanes;
    // Whole vectors of channels, and behind them the same in blocks.
    const int64_t padded = shape.out_channels * shape.depth;
    const Lines memory = allocate_lines(2 * padded * element);
    auto* const plain = reinterpret_cast<uint16_t*>(memory.get());
    std::copy_n(static_cast<const uint16_t*>(piece.weight), count, plain);
    std::fill(plain + count, plain + padded, uint16_t{0});
    lay_weight(shape, dtype, plain, plain + padded, parallel);
    piece.weight = plain + padded;
    compute_conv_tiles(call, piece, group, compute, parallel);
}

bool fits_tile_runs(const ConvCall& call, int64_t group) {
    return can_be_runs(call, {call.shape.stride[0], call.shape.stride[1]}) &&
           call.shape.out_channels % last_lanes == 0 &&
           fits_tiles(shape_of_runs(call.shape, group), group);
}

// Where x is copied, rows that are a stride apart lie one behind the other, and are as long as
// whole strides: so do the positions that see them.
void compute_conv_tile_runs(ConvCall& call, ConvPiece piece, int64_t group, ConvByTiles compute,
                            ParallelFor parallel) {
    ConvShape& shape = call.shape;
    const int64_t across = shape.stride[1];
    const int64_t weight_bytes = shape.out_channels * shape_of_runs(shape, group).depth * element;
    void* const laid =
        make_runs(call, piece, element, group, parallel, {shape.stride[0], across, weight_bytes});
    lay_weight(shape, dtype, piece.weight, laid, parallel);
    piece.weight = laid;
    const int64_t rows_of_phase = shape.x_image / shape.x_row / shape.stride[0];
    std::vector<int64_t> taps;
    for (int64_t i = 0; i < shape.kernel[0]; ++i) {
        const int64_t row = i * shape.dilation[0];
        taps.push_back((row % shape.stride[0] * rows_of_phase + row / shape.stride[0]) *
                       shape.x_row * element);
    }
    Work work{};
    work.piece = piece;
    work.compute = compute;
    work.whole.groups = groups_of_tile(shape, group);
    work.whole.out_channels = shape.out_channels;
    work.whole.x = static_cast<const char*>(piece.x);
    work.whole.taps = taps.data();
    work.whole.image = shape.x_image * element;
    work.whole.pixel = across * shape.x_pixel * element;
    work.whole.pitch = shape.x_row / (across * shape.x_pixel);
    work.whole.rows = shape.out_height;
    work.whole.width = shape.out_width;
    work.whole.positions = (shape.out_height - 1) * work.whole.pitch + shape.out_width;
    work.compute_images(shape.images, parallel);
}

}  // namespace twinkle_pack
