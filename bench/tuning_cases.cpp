#include "tuning_cases.h"

#include <twinkle/tuning.h>

#include <torch/types.h>

#include <cmath>
#include <optional>
#include <tuple>

namespace bench {
namespace {

namespace ops = twinkle::ops;
using at::Tensor;
using Maybe = std::optional<Tensor>;
using Tensors = std::vector<Tensor>;

// Of twinkle::ops' functions, by what they take.
using One = Tensor (*)(const Tensor&);
using Gate = Tensor (*)(const Tensor&, const Tensor&);
using Layer = Tensor (*)(const Tensor&, const Tensor&, const Maybe&);
using GatedLayer = Tensor (*)(const Tensor&, const Tensor&, const Maybe&, const Tensor&,
                              const Maybe&);

Tensor leaf(const Size& size, at::IntArrayRef sizes, double factor = 1) {
    const auto options = at::TensorOptions().dtype(at::kFloat).device(size.device);
    return (torch::randn(sizes, options) * factor).to(size.dtype).set_requires_grad(true);
}
Tensor tokens_of(const Size& size, std::int64_t columns) {
    return leaf(size, {size.tokens, columns});
}
Tensor row_of(const Size& size, std::int64_t columns) {
    return leaf(size, {columns});
}
// Results are as large as inputs.
Tensor weight_of(const Size& size) {
    const auto width = static_cast<double>(size.width);
    return leaf(size, {size.width, size.width}, 1 / std::sqrt(width));
}

template <class... T>
Tensors list(const std::tuple<T...>& results) {
    return std::apply([](const T&... each) { return Tensors{each...}; }, results);
}

NamedCase one(const char* op, One function, std::int64_t factor = 1) {
    return {op, [=](const Size& size) {
                const Tensor x = tokens_of(size, factor * size.width);
                return Case{{x}, [=] { return Tensors{function(x)}; }};
            }};
}
NamedCase gate(const char* op, Gate function) {
    return {op, [=](const Size& size) {
                const Tensor x = tokens_of(size, size.width), y = tokens_of(size, size.width);
                return Case{{x, y}, [=] { return Tensors{function(x, y)}; }};
            }};
}
NamedCase layer(const char* op, Layer function) {
    return {op, [=](const Size& size) {
                const Tensor x = tokens_of(size, size.width), weight = weight_of(size);
                const Tensor bias = row_of(size, size.width);
                return Case{{x, weight, bias}, [=] { return Tensors{function(x, weight, bias)}; }};
            }};
}
NamedCase gated_layer(const char* op, GatedLayer function) {
    return {op, [=](const Size& size) {
                const Tensor x = tokens_of(size, size.width);
                const Tensor gate = weight_of(size), up = weight_of(size);
                return Case{{x, gate, up}, [=] {
                                return Tensors{function(x, gate, std::nullopt, up, std::nullopt)};
                            }};
            }};
}

Case rms_norm(const Size& size) {
    const Tensor x = tokens_of(size, size.width), weight = row_of(size, size.width);
    return {{x, weight}, [=] { return Tensors{ops::rms_norm(x, weight)}; }};
}
Case layer_norm(const Size& size) {
    const Tensor x = tokens_of(size, size.width);
    const Tensor weight = row_of(size, size.width), bias = row_of(size, size.width);
    return {{x, weight, bias}, [=] { return Tensors{ops::layer_norm(x, weight, bias)}; }};
}
Case add_rms_norm(const Size& size) {
    const Tensor x = tokens_of(size, size.width), y = tokens_of(size, size.width);
    const Tensor weight = row_of(size, size.width);
    return {{x, y, weight}, [=] { return list(ops::add_rms_norm(x, y, weight)); }};
}
Case add_layer_norm(const Size& size) {
    const Tensor x = tokens_of(size, size.width), y = tokens_of(size, size.width);
    const Tensor weight = row_of(size, size.width), bias = row_of(size, size.width);
    return {{x, y, weight, bias}, [=] { return list(ops::add_layer_norm(x, y, weight, bias)); }};
}
Case apply_rotary(const Size& size) {
    constexpr std::int64_t head = 128;
    const Tensor x = leaf(size, {size.tokens, size.width / head, head});
    const Tensor angles = leaf(size, {size.tokens, 1, head}).detach();
    return {{x}, [=] { return Tensors{ops::apply_rotary(x, angles, angles)}; }};
}
Case linear2(const Size& size) {
    const Tensor x = tokens_of(size, size.width), a = weight_of(size), b = weight_of(size);
    return {{x, a, b}, [=] { return list(ops::linear2(x, a, std::nullopt, b, std::nullopt)); }};
}
Case linear3(const Size& size) {
    const Tensor x = tokens_of(size, size.width);
    const Tensor a = weight_of(size), b = weight_of(size), c = weight_of(size);
    return {{x, a, b, c}, [=] {
                return list(ops::linear3(x, a, std::nullopt, b, std::nullopt, c, std::nullopt));
            }};
}

constexpr std::int64_t columns_a_channel = 16;

Tensor image_of(const Size& size) {
    const auto side = std::llround(std::sqrt(static_cast<double>(size.tokens)));
    return leaf(size, {1, size.width / columns_a_channel, side, side});
}
Tensor kernel_of(const Size& size) {
    const std::int64_t channels = size.width / columns_a_channel;
    return leaf(size, {channels, channels, 3, 3}, 1 / std::sqrt(9.0 * double(channels)));
}
Case conv2d(const Size& size) {
    const Tensor x = image_of(size), weight = kernel_of(size), bias = row_of(size, x.size(1));
    const ops::Conv2dOptions how{.padding = {1, 1}, .activation = ops::ImageActivation::relu};
    return {{x, weight, bias}, [=] { return Tensors{ops::conv2d(x, weight, bias, how)}; }};
}
Case conv2d_with_norm(const Size& size) {
    const Tensor x = image_of(size), weight = kernel_of(size), residual = image_of(size);
    const Tensor gain = row_of(size, x.size(1)), offset = row_of(size, x.size(1));
    const Tensor mean = row_of(size, x.size(1)).detach();
    const ops::Conv2dOptions how{.padding = {1, 1},
                                 .mean = mean,
                                 .variance = mean.abs() + 1,
                                 .gain = gain,
                                 .offset = offset,
                                 .residual = residual,
                                 .activation = ops::ImageActivation::relu};
    return {{x, weight, gain, offset, residual},
            [=] { return Tensors{ops::conv2d(x, weight, std::nullopt, how)}; }};
}
Case max_pool2d(const Size& size) {
    const Tensor x = image_of(size);
    const ops::MaxPool2dOptions how{.stride = ops::Size2d{2, 2}, .padding = {1, 1}};
    return {{x}, [=] { return Tensors{ops::max_pool2d(x, {3, 3}, how)}; }};
}

Tensor heads_of(const Size& size) {
    constexpr std::int64_t width = 64;
    return leaf(size, {1, size.tokens, size.width / width, width}).transpose(1, 2);
}
Case attention(const Size& size) {
    const Tensor query = heads_of(size), key = heads_of(size), value = heads_of(size);
    return {{query, key, value}, [=] { return Tensors{ops::attention(query, key, value)}; }};
}

}  // namespace

const std::vector<NamedCase>& all_cases() {
    static const std::vector<NamedCase> all = {
        one("silu", ops::silu),
        one("gelu", ops::gelu),
        one("gelu_tanh", ops::gelu_tanh),
        one("gelu_new", ops::gelu_new),
        one("gelu_fast", ops::gelu_fast),
        one("gelu_quick", ops::gelu_quick),
        one("relu", ops::relu),
        gate("silu_mul", ops::silu_mul),
        gate("gelu_mul", ops::gelu_mul),
        gate("gelu_tanh_mul", ops::gelu_tanh_mul),
        one("silu_and_mul", ops::silu_and_mul, 2),
        one("gelu_and_mul", ops::gelu_and_mul, 2),
        one("gelu_tanh_and_mul", ops::gelu_tanh_and_mul, 2),
        one("mul_and_silu", ops::mul_and_silu, 2),
        {"rms_norm", rms_norm},
        {"layer_norm", layer_norm},
        {"add_rms_norm", add_rms_norm},
        {"add_layer_norm", add_layer_norm},
        {"apply_rotary", apply_rotary},
        layer("linear", ops::linear),
        layer("linear_silu", ops::linear_silu),
        layer("linear_gelu", ops::linear_gelu),
        layer("linear_gelu_tanh", ops::linear_gelu_tanh),
        layer("linear_relu", ops::linear_relu),
        gated_layer("linear_silu_mul", ops::linear_silu_mul),
        gated_layer("linear_gelu_mul", ops::linear_gelu_mul),
        gated_layer("linear_gelu_tanh_mul", ops::linear_gelu_tanh_mul),
        {"linear2", linear2},
        {"linear3", linear3},
        {"conv2d", conv2d},
        {"conv2d (norm, residual)", conv2d_with_norm},
        {"max_pool2d", max_pool2d},
        {"attention", attention},
    };
    return all;
}

}  // namespace bench
