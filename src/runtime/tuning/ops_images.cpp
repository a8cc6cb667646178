// Convolutions and pooling of images. Their gradients are LibTorch's, of its own way.

#include "twinkle/ops.h"

#include "runtime/tuning/ops_parts.h"

namespace twinkle::ops {

namespace {

using runtime::ExactSizes;
using runtime::PackOperation;

// In the order of the pack's operators.
using ConvNumbers = std::array<std::int64_t, 8>;  // stride, padding, dilation; groups, activation
using PoolNumbers = std::array<std::int64_t, 8>;  // kernel, stride, padding, dilation
using ConvSizes = ExactSizes<4>;  // channels and height of x; channels and kernel of the weight

at::IntArrayRef pair_at(const ConvNumbers& numbers, std::size_t at) {
    return {numbers.data() + at, 2};
}

Tensor with_activation(const Tensor& y, std::int64_t activation) {
    switch (static_cast<ImageActivation>(activation)) {
        case ImageActivation::none: return y;
        case ImageActivation::relu: return at::relu(y);
        case ImageActivation::relu6: return at::relu6(y);
        case ImageActivation::silu: return at::silu(y);
        case ImageActivation::gelu: return at::gelu(y);
        case ImageActivation::hardswish: return at::hardswish(y);
    }
    return y;
}

Tensor plain_conv2d(const Tensor& x, const Tensor& weight, const Maybe& bias, const Maybe& mean,
                    const Maybe& variance, const Maybe& gain, const Maybe& offset,
                    const double& eps, const Maybe& residual, const bool& residual_last,
                    const ConvNumbers& numbers, const bool& channels_last, const ConvSizes&) {
    constexpr double unused_momentum = 0.1;
    Tensor y = at::conv2d(x, weight, bias, pair_at(numbers, 0), pair_at(numbers, 2),
                          pair_at(numbers, 4), numbers[6]);
    if (mean && variance) {
        // Statistics have no gradients.
        y = at::batch_norm(y, gain, offset, mean->detach(), variance->detach(), false,
                           unused_momentum, eps, at::globalContext().userEnabledCuDNN());
    }
    if (residual && !residual_last) {
        y = y + *residual;
    }
    y = with_activation(y, numbers[7]);
    if (residual && residual_last) {
        y = y + *residual;
    }
    return channels_last && y.dim() == 4 ? y.contiguous(at::MemoryFormat::ChannelsLast) : y;
}

Tensor plain_max_pool2d(const Tensor& x, const PoolNumbers& numbers, const bool& ceil_mode) {
    return at::max_pool2d(x, pair_at(numbers, 0), pair_at(numbers, 2), pair_at(numbers, 4),
                          pair_at(numbers, 6), ceil_mode);
}

using Convolution = PackOperation<Tensor(Tensor, Tensor, Maybe, Maybe, Maybe, Maybe, Maybe, double,
                                         Maybe, bool, ConvNumbers, bool, ConvSizes)>;
using MaxPool = PackOperation<Tensor(Tensor, PoolNumbers, bool)>;

const Convolution& conv2d_operation() {
    static const Convolution operation("conv2d", plain_conv2d, nullptr);
    return operation;
}
const MaxPool& max_pool2d_operation() {
    static const MaxPool operation("max_pool2d", plain_max_pool2d, nullptr);
    return operation;
}

// The height of the result (`at` 0), or its width (`at` 1).
std::int64_t side_of_result(const ConvNumbers& numbers, std::size_t at, std::int64_t side,
                            std::int64_t kernel) {
    const std::int64_t stride = std::max<std::int64_t>(numbers[at], 1);
    const std::int64_t covered = numbers[4 + at] * (kernel - 1) + 1;
    return std::max<std::int64_t>((side + 2 * numbers[2 + at] - covered) / stride + 1, 0);
}

// All as large as they were.
void fit_convolution(Convolution::Arguments& arguments) {
    auto& [x, weight, bias, mean, variance, gain, offset, eps, residual, residual_last, numbers,
           channels_last, sizes] = arguments;
    const std::int64_t groups = std::max<std::int64_t>(numbers[6], 1);
    x = runtime::narrowed(runtime::narrowed(x, -3, sizes[0]), -2, sizes[1]);
    weight = runtime::narrowed(weight, 0, sizes[2]);
    weight = runtime::narrowed(weight, 1, sizes[0] / groups);
    weight = runtime::narrowed(weight, 2, sizes[3]);
    const std::int64_t out_height = side_of_result(numbers, 0, sizes[1], sizes[3]);
    runtime::require_possible({x.dim() == 4 ? x.size(0) : 1, sizes[2], out_height,
                               side_of_result(numbers, 1, x.size(last), weight.size(last))});
    if (residual) {
        residual = runtime::narrowed(*residual, -3, sizes[2]);
        residual = runtime::narrowed(*residual, -2, out_height);
    }
    if (variance) {
        variance = variance->abs() + 1;
    }
}

}  // namespace

void list_images(TuneTable& table) {
    list(table, conv2d_operation(), fit_convolution);
    list(table, max_pool2d_operation());
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Maybe& bias, const Conv2dOptions& how) {
    const ConvNumbers numbers = {how.stride[0],   how.stride[1],
                                 how.padding[0],  how.padding[1],
                                 how.dilation[0], how.dilation[1],
                                 how.groups,      static_cast<std::int64_t>(how.activation)};
    const ConvSizes sizes = {x.size(-3), x.size(-2), weight.size(0), weight.size(-2)};
    return executor()(conv2d_operation(), x, weight, bias, how.mean, how.variance, how.gain,
                      how.offset, how.eps, how.residual, how.residual_last, numbers,
                      how.channels_last, sizes);
}

Tensor max_pool2d(const Tensor& x, const Size2d& kernel, const MaxPool2dOptions& how) {
    const Size2d stride = how.stride.value_or(kernel);
    const PoolNumbers numbers = {kernel[0],      kernel[1],      stride[0],       stride[1],
                                 how.padding[0], how.padding[1], how.dilation[0], how.dilation[1]};
    return executor()(max_pool2d_operation(), x, numbers, how.ceil_mode);
}

}  // namespace twinkle::ops
