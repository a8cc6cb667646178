// Convolutions of two dimensions, with batch normalization, a residual and an activation behind
// them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "isa/functions.h"
#include "memory.h"
#include "operators/families.h"
#include "operators/images.h"
#include "operators/scratch.h"

namespace twinkle_pack {
namespace {

enum Argument { x_at, weight_at, bias_at, mean_at, variance_at, gain_at, offset_at, residual_at };
enum Number {
    eps_at,
    residual_last_at,
    stride_at,
    padding_at = 4,
    dilation_at = 6,
    groups_at = 8,
    finish_at
};

// The dimensions of a call, all groups together.
struct Geometry {
    ConvShape shape{};  // of one group
    int64_t groups = 0;
    bool is_valid = false;

    explicit Geometry(const Inputs& in) {
        const View &x = in.tensors[x_at], &weight = in.tensors[weight_at];
        if (x.dims != 4 || weight.dims != 4) return;
        groups = integer(in, groups_at);
        const int64_t finish = integer(in, finish_at);
        if (finish < 0 || finish >= conv_finish_count) return;
        if (groups < 1 || weight.sizes[0] % groups != 0) return;
        shape.channels = weight.sizes[1];
        shape.out_channels = weight.sizes[0] / groups;
        if (shape.channels > x.sizes[1] || shape.channels * groups != x.sizes[1]) return;
        for (int d = 0; d < 2; ++d) {
            shape.kernel[d] = weight.sizes[2 + d];
            shape.stride[d] = integer(in, stride_at + d);
            shape.padding[d] = integer(in, padding_at + d);
            shape.dilation[d] = integer(in, dilation_at + d);
        }
        is_valid = set_windows(x, shape);
        shape.result_image = all_out_channels() * shape.out_pixels;
    }

    int64_t all_out_channels() const { return shape.out_channels * groups; }
    bool is_depthwise() const { return shape.channels == 1 && groups > 1; }
};

bool has_result_shape(const View& view, const Geometry& geometry) {
    const int64_t sizes[] = {geometry.shape.images, geometry.all_out_channels(),
                             geometry.shape.out_height, geometry.shape.out_width};
    return view.dims == 4 && std::equal(sizes, sizes + 4, view.sizes);
}

bool has_one_for_each_channel(const View& view, const Geometry& geometry, int dtype,
                              bool may_be_float) {
    return view.dims == 1 && view.sizes[0] == geometry.all_out_channels() &&
           (view.scalar_type == dtype ||
            (may_be_float && view.scalar_type == scalar_type_of(DType::float32)));
}

bool serves(const Inputs& in) {
    const View &x = in.tensors[x_at], &weight = in.tensors[weight_at];
    if (!is_supported(x.scalar_type) || weight.scalar_type != x.scalar_type) return false;
    const Geometry geometry(in);
    if (!geometry.is_valid) return false;
    for (const int at : {bias_at, mean_at, variance_at, gain_at, offset_at})
        if (in.tensors[at].is_there() &&
            !has_one_for_each_channel(in.tensors[at], geometry, x.scalar_type, at != bias_at))
            return false;
    if (in.tensors[mean_at].is_there() != in.tensors[variance_at].is_there()) return false;
    if (const View& residual = in.tensors[residual_at]; residual.is_there())
        if (residual.scalar_type != x.scalar_type || !has_result_shape(residual, geometry) ||
            !is_dense(residual, 2))
            return false;
    if (is_channels_last(x) || is_channels_last(weight)) return false;
    if (!is_dense(weight, 4) || (x.sizes[3] > 1 && x.strides[3] != 1)) return false;
    const RowFunctions& functions = row_functions();
    const int dtype = static_cast<int>(dtype_of(x));
    return (geometry.is_depthwise() ? functions.conv_depthwise : functions.conv_dense)[dtype] !=
           nullptr;
}

void plan(const char*, const Inputs& in, Plan& plan) {
    const Geometry geometry(in);
    add_image(in.tensors[x_at], geometry.all_out_channels(), geometry.shape, plan);
}

double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = bits & 1023;
    const double value = exponent == 0    ? std::ldexp(fraction, -24)
                         : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                          : std::ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

double element(const View& view, int64_t i) {
    const int64_t at = i * view.strides[0];
    switch (dtype_of(view)) {
        case DType::float32: return static_cast<const float*>(view.data)[at];
        case DType::float64: return static_cast<const double*>(view.data)[at];
        case DType::float16: return half_value(static_cast<const uint16_t*>(view.data)[at]);
        case DType::bfloat16: break;
    }
    const uint32_t bits = uint32_t{static_cast<const uint16_t*>(view.data)[at]} << 16;
    return __builtin_bit_cast(float, bits);
}

// What bias and batch normalization do to a sum of each channel.
struct Scales {
    std::vector<float> scale, shift;

    Scales(const Inputs& in, int64_t channels)
        : scale(static_cast<size_t>(channels)), shift(scale.size()) {
        const auto of = [&](int at, int64_t channel, double otherwise) {
            const View& view = in.tensors[at];
            return view.is_there() ? element(view, channel) : otherwise;
        };
        const bool is_normalized = in.tensors[mean_at].is_there();
        for (int64_t c = 0; c < channels; ++c) {
            double factor = 1, added = of(bias_at, c, 0);
            if (is_normalized) {
                factor = of(gain_at, c, 1) / std::sqrt(of(variance_at, c, 1) + in.numbers[eps_at]);
                added = (added - of(mean_at, c, 0)) * factor + of(offset_at, c, 0);
            }
            scale[static_cast<size_t>(c)] = static_cast<float>(factor);
            shift[static_cast<size_t>(c)] = static_cast<float>(added);
        }
    }
};

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

// Fewer products of numbers than this are not worth waking another thread.
constexpr int64_t grain_products = 1 << 16;

int64_t units_for(int64_t products) {
    return std::max<int64_t>(1, grain_products / std::max<int64_t>(products, 1));
}

void run_depthwise(Work& work, ConvShape& shape, int64_t groups, ParallelFor parallel) {
    shape.channels = groups;
    shape.out_channels *= groups;
    const int64_t plane = band_elements(shape, shape.out_pixels, 1) + 64;
    work.scratch_bytes = conv_scratch + plane * work.size;
    parallel(shape.images * shape.out_channels, units_for(shape.out_pixels * shape.taps),
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
             units_for(shape.depth * work.pixels_each * Work::unit), Work::run, &work);
}

void compute(const Inputs& in, const Plan& plan, void* const* results, ParallelFor parallel) {
    Geometry geometry(in);
    ConvShape& shape = geometry.shape;
    if (shape.images * geometry.all_out_channels() * shape.out_pixels == 0) return;
    const View &x = in.tensors[x_at], &residual = in.tensors[residual_at];
    const Scales scales(in, geometry.all_out_channels());
    const int dtype = static_cast<int>(dtype_of(x));
    Work work{};
    work.size = element_size(dtype_of(x));
    work.whole.shape = &shape;
    work.whole.x = x.data;
    work.whole.weight = in.tensors[weight_at].data;
    work.whole.result = results[0];
    work.whole.scale = scales.scale.data();
    work.whole.shift = scales.shift.data();
    work.whole.finish = static_cast<ConvFinish>(integer(in, finish_at));
    work.whole.residual_last = in.numbers[residual_last_at] != 0;
    if (residual.is_there()) {
        work.whole.residual = residual.data;
        shape.residual_image = residual.strides[0];
        shape.residual_channel = residual.strides[1];
    }
    prefer_huge_pages(results[0],
                      shape.images * shape.result_image * element_size(plan.results[0].dtype));
    const RowFunctions& functions = row_functions();
    if (geometry.is_depthwise()) {
        work.compute = functions.conv_depthwise[dtype];
        run_depthwise(work, shape, geometry.groups, parallel);
    } else {
        work.compute = functions.conv_dense[dtype];
        run_dense(work, shape, geometry.groups, parallel);
    }
}

constexpr Operator convolution() {
    Operator op{"conv2d",
                "conv2d(Tensor x, Tensor weight, Tensor? bias, Tensor? mean, Tensor? variance, "
                "Tensor? gain, Tensor? offset, float eps, Tensor? residual, bool residual_last, "
                "int stride_h, int stride_w, int padding_h, int padding_w, int dilation_h, "
                "int dilation_w, int groups, int activation) -> Tensor?",
                "ttooooofobiiiiiiii",
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
