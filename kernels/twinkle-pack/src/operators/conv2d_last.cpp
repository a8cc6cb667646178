// Convolutions of images whose channels lie last, or whose result is to be such an image.
#include <algorithm>
#include <memory>

#include "memory.h"
#include "operators/conv_grid.h"
#include "operators/conv_tiles.h"
#include "operators/conv_winograd.h"
#include "operators/convolution.h"
#include "operators/few_channels.h"
#include "operators/scratch.h"
#include "operators/window_rows.h"

namespace twinkle_pack {
namespace {

// Groups with fewer channels than this leave most of a vector empty where a pixel's neighbours are
// seen: LibTorch takes 0.1 to 0.9 of the time.
constexpr int64_t least_of_group = 32;

bool is_thin(const ConvCall& call) {
    return call.groups > 1 && !call.is_depthwise() && call.shape.taps > 1 &&
           call.shape.channels < least_of_group;
}

// Strides of the weight, apart from those of dimensions of size 1, which mean nothing.
bool set_weight(const View& weight, ConvShape& shape) {
    if (shape.weight_block != 0) return true;
    const bool is_plain = is_dense(weight, 4);
    shape.is_patched = shape.channels < least_last_channels && is_plain;
    shape.weight_in = is_plain && !shape.is_patched ? shape.taps : 1;
    shape.weight_tap = is_plain ? 1 : shape.channels;
    return is_plain || is_dense_last(weight);
}

// Pixels at one distance, through all images.
bool set_residual(const View& residual, ConvShape& shape) {
    if (!residual.is_there()) return true;
    const int64_t* const strides = residual.strides;
    const int64_t* const sizes = residual.sizes;
    if (sizes[1] > 1 && strides[1] != 1) return true;  // it is copied
    int64_t pixel = sizes[1];
    for (const int d : {3, 2, 0})
        if (sizes[d] > 1) {
            pixel = strides[d] / (d == 3 ? 1 : d == 2 ? sizes[3] : sizes[3] * sizes[2]);
            break;
        }
    shape.residual_pixel = pixel;
    return (sizes[3] == 1 || strides[3] == pixel) &&
           (sizes[2] == 1 || strides[2] == pixel * sizes[3]) &&
           (sizes[0] == 1 || strides[0] == pixel * sizes[3] * sizes[2]);
}

void set_strides(const Inputs& in, ConvCall& call) {
    const View& x = in.tensors[ConvCall::x_at];
    call.shape.x_pixel = x.strides[3];
    call.shape.result_pixel = call.all_out_channels();
    call.shape.residual_pixel = call.all_out_channels();
    call.shape.residual_channel = 1;
    set_weight(in.tensors[ConvCall::weight_at], call.shape);
    set_residual(in.tensors[ConvCall::residual_at], call.shape);
}

struct Work {
    ConvPiece whole;  // of the first group
    Conv compute;
    int64_t size;  // of an element
    ConvGrid grid;
    int64_t scratch_bytes;

    static constexpr int64_t vector = 16, most_vectors = 4;  // channels

    ConvPiece of_group(int64_t group) const {
        ConvPiece piece = piece_of_group(whole, group, size, 1);
        piece.scratch = scratch(scratch_bytes);
        return piece;
    }

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        const ConvShape& shape = *work.whole.shape;
        while (begin < end) {
            const int64_t units = work.grid.units, row = begin / units;
            const int64_t first = begin - row * units;
            const int64_t last = std::min(units, first + end - begin);
            ConvPiece piece = work.of_group(row / work.grid.blocks);
            piece.pixel_begin = row % work.grid.blocks * piece.most_pixels;
            piece.pixel_end =
                std::min(piece.pixel_begin + piece.most_pixels, shape.images * shape.out_pixels);
            piece.begin = work.grid.first_channel(first, vector);
            piece.end = std::min(work.grid.first_channel(last, vector), shape.out_channels);
            work.compute(piece);
            begin += last - first;
        }
    }
};

void run_dense(Work& work, const ConvShape& shape, int64_t groups, ParallelFor parallel) {
    work.grid =
        divide({shape.images * shape.out_pixels, 1, conv_pixels, shape.out_channels, Work::vector,
                Work::most_vectors, groups, shape.depth * shape.out_channels, parallel.threads});
    const int64_t most = work.whole.most_pixels = work.grid.pixels_each;
    constexpr int64_t vector = 64;  // what may be written behind the last patch
    const bool is_float = work.size == 4;
    work.scratch_bytes = conv_scratch + (is_float ? 0 : most * most_last_group * 4) +
                         (shape.is_patched ? 1 : shape.taps) * most * 8 + shape.channels * 4 +
                         (shape.is_patched ? most * (shape.depth + 1) * 4 : 0) + vector;
    parallel(groups * work.grid.blocks * work.grid.units,
             conv_units_for(shape.depth * shape.out_channels / work.grid.units * most), Work::run,
             &work);
}

void run_depthwise(Work& work, ConvShape& shape, int64_t channels, ParallelFor parallel) {
    const std::unique_ptr<float[]> by_tap(new float[static_cast<size_t>(channels * shape.taps)]);
    const auto sort = [&](const auto* weight, auto value) {
        for (int64_t tap = 0; tap < shape.taps; ++tap)
            for (int64_t c = 0; c < channels; ++c)
                by_tap[tap * channels + c] = value(weight[c * shape.taps + tap]);
    };
    if (work.size == 4)
        sort(static_cast<const float*>(work.whole.weight), [](float value) { return value; });
    else
        sort(static_cast<const uint16_t*>(work.whole.weight), [](uint16_t bits) {
            return __builtin_bit_cast(float, uint32_t{bits} << 16);  // of bfloat16
        });
    work.whole.weight = by_tap.get();
    shape.channels = shape.out_channels = channels;
    compute_window_rows(work.whole, work.compute, parallel);
}

}  // namespace

bool is_computed_last(const Inputs& in) {
    const View &x = in.tensors[ConvCall::x_at], &weight = in.tensors[ConvCall::weight_at];
    ConvCall call(in);
    if (!call.is_valid || !call.has_right_tensors(in)) return false;
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(x));
    if (!(call.is_depthwise() ? functions.depthwise_last : functions.conv_last)[dtype])
        return false;
    if (in.numbers[ConvCall::layout_at] == 0 && !is_channels_last(x) &&
        (call.shape.weight_block != 0 || !is_channels_last(weight)))
        return false;
    if (call.is_depthwise() && call.shape.out_channels != 1) return false;
    if (is_thin(call)) return false;
    if (functions.plain_tiles_are_libtorchs[dtype] && !call.is_depthwise() &&
        call.shape.weight_block == 0 && call.shape.channels % tile_channels == 0 &&
        !is_laid_in_call(call, functions.conv_last_group[dtype]))
        return false;
    // A group of them is read at once, even where the image ends.
    const bool has_groups = call.shape.channels % functions.conv_last_group[dtype] == 0;
    return set_weight(weight, call.shape) &&
           (has_groups || call.is_depthwise() || call.shape.is_patched) &&
           set_residual(in.tensors[ConvCall::residual_at], call.shape);
}

void plan_last(const Inputs& in, Plan& plan) {
    ConvCall call(in);
    set_strides(in, call);
    add_image(in.tensors[ConvCall::x_at], call.all_out_channels(), call.shape, plan, true);
    plan.read_in_place(ConvCall::weight_at);
    if (call.shape.is_patched && !call.is_depthwise()) plan.read_in_place(ConvCall::x_at);
}

void compute_last(const Inputs& in, void* const* results, ParallelFor parallel) {
    ConvCall call(in);
    ConvShape& shape = call.shape;
    const int64_t elements = shape.images * shape.result_image;
    if (elements == 0) return;
    set_strides(in, call);
    const ConvScales scales(in, call.all_out_channels());
    const DType dtype = dtype_of(in.tensors[ConvCall::x_at]);
    const int index = static_cast<int>(dtype);
    Work work{};
    work.size = element_size(dtype);
    work.whole = whole_piece(in, scales, results[0]);
    work.whole.shape = &shape;
    prefer_huge_pages(results[0], elements * work.size);
    const RowFunctions& functions = row_functions();
    work.compute =
        call.is_depthwise() ? functions.depthwise_last[index] : functions.conv_last[index];
    const int64_t group = functions.conv_last_group[index];
    if (functions.conv_tiles[index] && !call.is_depthwise() && fits_tile_runs(call, group)) {
        compute_conv_tile_runs(call, work.whole, group, functions.conv_tiles[index], parallel);
        return;
    }
    const bool is_copied = can_be_runs(call) && !call.is_depthwise();
    if (is_copied) make_runs(call, work.whole, work.size, group, parallel);
    if (call.is_depthwise())
        run_depthwise(work, shape, call.groups, parallel);
    else if (functions.conv_tiles[index] && fits_tiles(call, group))
        compute_conv_tiles(call, work.whole, group, functions.conv_tiles[index], parallel);
    else if (functions.conv_tiles[index] && !is_copied && is_laid_in_call(call, group))
        compute_laid_conv_tiles(call, work.whole, group, functions.conv_tiles[index], parallel);
    else if (dtype == DType::float32 && is_winograd(call))
        compute_winograd(work.whole, parallel);
    else
        run_dense(work, shape, call.groups, parallel);
}

}  // namespace twinkle_pack
