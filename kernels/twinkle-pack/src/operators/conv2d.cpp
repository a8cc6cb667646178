// Convolutions of two dimensions, with batch normalization, a residual and an activation behind
// them.
#include <algorithm>

#include "memory.h"
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

// A grid of pieces: blocks of pixels, and channels in units that threads can share.
struct Work {
    ConvPiece whole;  // of the first group
    Conv compute;
    int64_t size;  // of an element
    int64_t groups, channel_units, blocks, pixels_each, scratch_bytes;
    bool are_rows;  // a block is part of a row

    static constexpr int64_t unit = 48;

    void place(int64_t block, ConvPiece& piece) const {
        const ConvShape& shape = *whole.shape;
        if (are_rows) {
            const int64_t in_row = (shape.out_width + pixels_each - 1) / pixels_each;
            const int64_t row = block / in_row;
            piece.pixel_begin = row * shape.out_width + block % in_row * pixels_each;
            piece.pixel_end =
                std::min(piece.pixel_begin + pixels_each, (row + 1) * shape.out_width);
        } else {
            piece.pixel_begin = block * pixels_each;
            piece.pixel_end =
                std::min(piece.pixel_begin + pixels_each, shape.images * shape.out_pixels);
        }
    }

    ConvPiece of_group(int64_t group) const {
        const ConvShape& shape = *whole.shape;
        ConvPiece piece = whole;
        const auto moved = [&](const void* from, int64_t by) {
            return from ? static_cast<const char*>(from) + by * size : nullptr;
        };
        const int64_t channel = group * shape.out_channels;
        piece.x = moved(whole.x, group * shape.channels * shape.x_channel);
        piece.weight = moved(whole.weight, channel * shape.depth);
        piece.residual = moved(whole.residual, channel * shape.residual_channel);
        piece.result = static_cast<char*>(whole.result) + channel * shape.out_pixels * size;
        piece.scale += channel;
        piece.shift += channel;
        piece.scratch = scratch(scratch_bytes);
        return piece;
    }

    // Units of channels are counted within a block of pixels, blocks within a group.
    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        while (begin < end) {
            const int64_t units = work.channel_units, row = begin / units;
            const int64_t first = begin - row * units;
            const int64_t last = std::min(units, first + end - begin);
            ConvPiece piece = work.of_group(row / work.blocks);
            work.place(row % work.blocks, piece);
            piece.begin = first * unit;
            piece.end = std::min(last * unit, work.whole.shape->out_channels);
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
    const int64_t all = shape.images * shape.out_pixels;
    work.groups = groups;
    work.are_rows = shape.out_width >= conv_pixels && !shape.is_pointwise;
    const int64_t divided = work.are_rows ? shape.out_width : all;
    const int64_t parts = (divided + conv_pixels - 1) / conv_pixels;
    const int64_t panels = (divided + panel - 1) / panel;
    work.pixels_each = (panels + parts - 1) / parts * panel;
    work.blocks = (divided + work.pixels_each - 1) / work.pixels_each;
    if (work.are_rows) work.blocks *= shape.images * shape.out_height;
    work.channel_units = (shape.out_channels + Work::unit - 1) / Work::unit;
    work.scratch_bytes = conv_scratch;
    if (!shape.is_pointwise) {
        const int64_t channel = band_elements(shape, work.pixels_each, 1);
        const int64_t deepest = 2 * conv_depth / shape.taps + 2;
        const int64_t fitting = band_bytes / (channel * work.size);
        work.whole.band_channels = std::min(shape.channels, std::max(deepest, fitting));
        work.scratch_bytes += (work.whole.band_channels * channel + 64) * work.size;
    }
    parallel(groups * work.blocks * work.channel_units,
             conv_units_for(shape.depth * work.pixels_each * Work::unit), Work::run, &work);
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
