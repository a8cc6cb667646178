// Convolutions of two dimensions, with batch normalization, a residual and an activation behind
// them.
#include <algorithm>

#include "memory.h"
#include "operators/conv_grid.h"
#include "operators/convolution.h"
#include "operators/families.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

bool is_computed_plain(const Inputs& in) {
    const View &x = in.tensors[ConvCall::x_at], &weight = in.tensors[ConvCall::weight_at];
    const ConvCall call(in);
    if (!call.is_valid || !call.has_right_tensors(in)) return false;
    if (const View& residual = in.tensors[ConvCall::residual_at];
        residual.is_there() && !is_dense(residual, 2))
        return false;
    if (call.shape.weight_block != 0) return false;
    if (is_channels_last(x) || is_channels_last(weight)) return false;
    if (!is_dense(weight, 4) || (x.sizes[3] > 1 && x.strides[3] != 1)) return false;
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(x));
    return (call.is_depthwise() ? functions.conv_depthwise : functions.conv_dense)[dtype] !=
           nullptr;
}

bool serves(const Inputs& in) {
    return is_computed_last(in) || is_computed_plain(in);
}

void plan(const char*, const Inputs& in, Plan& plan) {
    if (is_computed_last(in)) return plan_last(in, plan);
    const ConvCall call(in);
    add_image(in.tensors[ConvCall::x_at], call.all_out_channels(), call.shape, plan);
}

struct Work {
    ConvPiece whole;  // of the first group
    Conv compute;
    int64_t size;  // of an element
    ConvGrid grid;
    int64_t blocks;  // of all rows, if blocks are parts of these
    int64_t scratch_bytes;
    bool are_rows;

    static constexpr int64_t tile = 12, most_tiles = 4;  // channels

    void place(int64_t block, ConvPiece& piece) const {
        const ConvShape& shape = *whole.shape;
        const int64_t row = block / grid.blocks;
        const int64_t row_size = are_rows ? shape.out_width : shape.images * shape.out_pixels;
        piece.pixel_begin = row * row_size + block % grid.blocks * grid.pixels_each;
        piece.pixel_end = std::min(piece.pixel_begin + grid.pixels_each, (row + 1) * row_size);
    }

    ConvPiece of_group(int64_t group) const {
        ConvPiece piece = piece_of_group(whole, group, size, whole.shape->out_pixels);
        piece.scratch = scratch(scratch_bytes);
        return piece;
    }

    // Units of channels are counted within a block of pixels, blocks within a group.
    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        while (begin < end) {
            const int64_t units = work.grid.units, row = begin / units;
            const int64_t first = begin - row * units;
            const int64_t last = std::min(units, first + end - begin);
            ConvPiece piece = work.of_group(row / work.blocks);
            work.place(row % work.blocks, piece);
            piece.begin = work.grid.first_channel(first, tile);
            piece.end =
                std::min(work.grid.first_channel(last, tile), work.whole.shape->out_channels);
            work.compute(piece);
            begin += last - first;
        }
    }

    static void run_planes(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        ConvPiece piece = work.of_group(0);
        piece.begin = begin;
        piece.end = end;
        work.compute(piece);
    }
};

// What is copied of x is used by many channels of the result, if it stays in the cache.
constexpr int64_t band_bytes = 640 * 1024;

void run_depthwise(Work& work, ConvShape& shape, int64_t groups, ParallelFor parallel) {
    shape.channels = groups;
    shape.out_channels *= groups;
    const int64_t plane = band_elements(shape, shape.out_pixels, 1) + 64;
    work.scratch_bytes = conv_scratch + plane * work.size;
    parallel(shape.images * shape.out_channels, conv_units_for(shape.out_pixels * shape.taps),
             Work::run_planes, &work);
}

void run_dense(Work& work, const ConvShape& shape, int64_t groups, ParallelFor parallel) {
    constexpr int64_t panel = 32;
    work.are_rows = shape.out_width >= conv_pixels && !shape.is_pointwise;
    const int64_t rows = work.are_rows ? shape.images * shape.out_height : 1;
    const int64_t divided = work.are_rows ? shape.out_width : shape.images * shape.out_pixels;
    work.grid =
        divide({divided, panel, conv_pixels, shape.out_channels, Work::tile, Work::most_tiles,
                groups * rows, shape.depth * shape.out_channels, parallel.threads});
    work.blocks = work.grid.blocks * rows;
    work.scratch_bytes = conv_scratch;
    if (!shape.is_pointwise) {
        const int64_t channel = band_elements(shape, work.grid.pixels_each, 1);
        const int64_t deepest = 2 * conv_depth / shape.taps + 2;
        const int64_t fitting = band_bytes / (channel * work.size);
        work.whole.band_channels = std::min(shape.channels, std::max(deepest, fitting));
        work.scratch_bytes += (work.whole.band_channels * channel + 64) * work.size;
    }
    parallel(
        groups * work.blocks * work.grid.units,
        conv_units_for(shape.depth * shape.out_channels / work.grid.units * work.grid.pixels_each),
        Work::run, &work);
}

void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    if (is_computed_last(in)) return compute_last(in, results, parallel);
    ConvCall call(in);
    ConvShape& shape = call.shape;
    if (shape.images * call.all_out_channels() * shape.out_pixels == 0) return;
    const View &x = in.tensors[ConvCall::x_at], &residual = in.tensors[ConvCall::residual_at];
    const ConvScales scales(in, call.all_out_channels());
    const int dtype = static_cast<int>(dtype_of(x));
    Work work{};
    work.size = element_size(dtype_of(x));
    work.whole = whole_piece(in, scales, results[0]);
    work.whole.shape = &shape;
    if (residual.is_there()) {
        shape.residual_image = residual.strides[0];
        shape.residual_channel = residual.strides[1];
    }
    prefer_huge_pages(results[0],
                      shape.images * shape.result_image * element_size(plan.results[0].dtype));
    const RowFunctions& functions = row_functions();
    if (call.is_depthwise()) {
        work.compute = functions.conv_depthwise[dtype];
        run_depthwise(work, shape, call.groups, parallel);
    } else {
        work.compute = functions.conv_dense[dtype];
        run_dense(work, shape, call.groups, parallel);
    }
}

constexpr Operator convolution() {
    Operator op{"conv2d",
                "conv2d(Tensor x, Tensor weight, Tensor? bias, Tensor? mean, Tensor? variance, "
                "Tensor? gain, Tensor? offset, float eps, Tensor? residual, bool residual_last, "
                "int stride_h, int stride_w, int padding_h, int padding_w, int dilation_h, "
                "int dilation_w, int groups, int activation, bool channels_last) -> Tensor?",
                "ttooooofobiiiiiiiib",
                plan,
                compute,
                serves};
    op.may_decline = true;
    return op;
}

}  // namespace

OperatorList conv2d_operators() {
    static constexpr Operator all[] = {convolution()};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
