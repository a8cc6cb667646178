#include "operators/images.h"

#include <algorithm>

namespace twinkle_pack {
namespace {

bool is_small(const ConvShape& shape, int d) {
    constexpr int64_t most = 1 << 20;
    return shape.kernel[d] >= 1 && shape.kernel[d] <= most_kernel && shape.stride[d] >= 1 &&
           shape.stride[d] <= most_conv_stride && shape.padding[d] >= 0 &&
           shape.padding[d] <= most && shape.dilation[d] >= 1 && shape.dilation[d] <= most;
}

}  // namespace

int64_t integer(const Inputs& in, int at) {
    return static_cast<int64_t>(in.numbers[at]);
}

// As PyTorch sees it, which gives such results in the same layout.
bool is_channels_last(const View& view) {
    int64_t least = 0;
    if (view.strides[1] == 0) return false;
    for (const int d : {1, 3, 2, 0}) {
        if (view.sizes[d] == 0 || view.strides[d] < least) return false;
        if (d == 0 && least == view.strides[1]) return false;
        least = view.strides[d] * std::max<int64_t>(view.sizes[d], 1);
    }
    return true;
}

// Whether the last `dims` dimensions are next to each other.
bool is_dense(const View& view, int64_t dims) {
    int64_t step = 1;
    for (int64_t d = view.dims - 1; d >= view.dims - dims; --d) {
        if (view.sizes[d] != 1 && view.strides[d] != step) return false;
        step *= view.sizes[d];
    }
    return true;
}

bool is_dense_last(const View& view) {
    int64_t step = 1;
    for (const int d : {1, 3, 2, 0}) {
        if (view.sizes[d] != 1 && view.strides[d] != step) return false;
        step *= view.sizes[d];
    }
    return true;
}

bool set_windows(const View& x, ConvShape& shape) {
    for (int d = 0; d < 2; ++d) {
        if (!is_small(shape, d)) return false;
        const int64_t seen = shape.dilation[d] * (shape.kernel[d] - 1) + 1;
        const int64_t padded = x.sizes[2 + d] + 2 * shape.padding[d];
        if (padded < seen) return false;
        (d == 0 ? shape.out_height : shape.out_width) = (padded - seen) / shape.stride[d] + 1;
    }
    shape.images = x.sizes[0];
    shape.height = x.sizes[2];
    shape.width = x.sizes[3];
    shape.taps = shape.kernel[0] * shape.kernel[1];
    shape.depth = shape.channels * shape.taps;
    shape.out_pixels = shape.out_height * shape.out_width;
    shape.x_image = x.strides[0];
    shape.x_channel = x.strides[1];
    shape.x_row = x.strides[2];
    shape.is_pointwise = shape.taps == 1 && shape.stride[0] == 1 && shape.stride[1] == 1 &&
                         shape.padding[0] == 0 && shape.padding[1] == 0 &&
                         (shape.x_row == shape.width || shape.height == 1);
    return true;
}

void add_image(const View& x, int64_t channels, const ConvShape& shape, Plan& plan,
               bool channels_last) {
    const int64_t sizes[] = {shape.images, channels, shape.out_height, shape.out_width};
    View image = x;
    image.sizes = sizes;
    plan.order = Order::identity(4);
    if (channels_last) plan.order = {4, {0, 2, 3, 1}};
    plan.add(image, dtype_of(x));
}

// The most that loops/conv_band.h needs for so many pixels and channels, in elements.
int64_t band_elements(const ConvShape& shape, int64_t pixels, int64_t channels) {
    const auto reach = [&](int d) {
        return (shape.kernel[d] - 1) * shape.dilation[d] / shape.stride[d];
    };
    const int64_t images = (pixels + shape.out_pixels - 2) / shape.out_pixels + 1;
    const int64_t rows = (pixels + shape.out_width - 2) / shape.out_width + 1;
    const int64_t phases =
        std::min(shape.kernel[0], shape.stride[0]) * std::min(shape.kernel[1], shape.stride[1]);
    return channels * phases * (rows + images * reach(0)) * (shape.out_width + reach(1));
}

}  // namespace twinkle_pack
