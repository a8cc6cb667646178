// The largest element of windows of an image.
#include <algorithm>

#include "operators/families.h"
#include "operators/images.h"
#include "operators/scratch.h"
#include "operators/window_rows.h"

namespace twinkle_pack {
namespace {

enum Number { kernel_at, stride_at = 2, padding_at = 4, dilation_at = 6, ceil_at = 8 };

bool set_shape(const Inputs& in, ConvShape& shape) {
    const View& x = in.tensors[0];
    if (x.dims != 4) return false;
    for (int d = 0; d < 2; ++d) {
        shape.kernel[d] = integer(in, kernel_at + d);
        shape.stride[d] = integer(in, stride_at + d);
        shape.padding[d] = integer(in, padding_at + d);
        shape.dilation[d] = integer(in, dilation_at + d);
        if (shape.padding[d] > shape.kernel[d] / 2) return false;
    }
    shape.channels = shape.out_channels = x.sizes[1];
    if (!set_windows(x, shape)) return false;
    shape.result_image = shape.channels * shape.out_pixels;
    return true;
}

bool is_computed_last(const View& x) {
    return is_channels_last(x) && x.strides[1] == 1 &&
           row_functions().max_pool_last[static_cast<int>(dtype_of(x))];
}

bool serves(const Inputs& in) {
    const View& x = in.tensors[0];
    ConvShape shape{};
    if (!is_supported(x.scalar_type) || !set_shape(in, shape)) return false;
    // An empty window would be minus infinity; windows beyond the end have fewer elements.
    if (in.numbers[ceil_at] != 0) return false;
    if (is_channels_last(x)) return is_computed_last(x);
    const bool is_plain = x.sizes[3] == 1 || x.strides[3] == 1;
    return is_plain && row_functions().max_pool[static_cast<int>(dtype_of(x))];
}

void plan(const char*, const Inputs& in, Plan& plan) {
    ConvShape shape{};
    set_shape(in, shape);
    add_image(in.tensors[0], shape.channels, shape, plan, is_computed_last(in.tensors[0]));
}

struct Work {
    ConvPiece whole;
    Conv compute;
    int64_t scratch_bytes;

    static void run(int64_t begin, int64_t end, void* context) {
        const Work& work = *static_cast<const Work*>(context);
        ConvPiece piece = work.whole;
        piece.begin = begin;
        piece.end = end;
        piece.scratch = scratch(work.scratch_bytes);
        work.compute(piece);
    }
};

void compute(const Inputs& in, const Plan&, void* const* results, ParallelFor parallel) {
    const View& x = in.tensors[0];
    ConvShape shape{};
    set_shape(in, shape);
    if (shape.images * shape.result_image == 0) return;
    Work work{};
    work.whole.shape = &shape;
    work.whole.x = x.data;
    work.whole.result = results[0];
    work.compute = row_functions().max_pool[static_cast<int>(dtype_of(x))];
    work.scratch_bytes =
        conv_scratch + (band_elements(shape, shape.out_pixels, 1) + 64) * element_size(dtype_of(x));
    if (is_computed_last(x)) {
        shape.x_pixel = x.strides[3];
        return compute_window_rows(
            work.whole, row_functions().max_pool_last[static_cast<int>(dtype_of(x))], parallel);
    }
    constexpr int64_t grain = 1 << 14;
    parallel(shape.images * shape.channels,
             std::max<int64_t>(1, grain / (shape.out_pixels * shape.taps)), Work::run, &work);
}

constexpr Operator max_pool2d() {
    Operator op{"max_pool2d",
                "max_pool2d(Tensor x, int kernel_h, int kernel_w, int stride_h, int stride_w, "
                "int padding_h, int padding_w, int dilation_h, int dilation_w, bool ceil_mode) "
                "-> Tensor?",
                "tiiiiiiiib",
                plan,
                compute,
                serves};
    op.may_decline = true;
    return op;
}

}  // namespace

OperatorList max_pool2d_operators() {
    static constexpr Operator all[] = {max_pool2d()};
    return {all, sizeof all / sizeof *all};
}

}  // namespace twinkle_pack
