#pragma once
// Calls of the pack's conv2d, beside what LibTorch makes of them.

#include "pack_library.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace pack::conv {

struct Activation {
    int64_t code;
    Tensor (*of)(const Tensor&);
};
inline const Activation activations[] = {
    {0, [](const Tensor& x) { return x; }},
    {1, [](const Tensor& x) { return at::relu(x); }},
    {2, [](const Tensor& x) { return at::relu6(x); }},
    {3, [](const Tensor& x) { return at::silu(x); }},
    {4, [](const Tensor& x) { return at::gelu(x); }},
    {5, [](const Tensor& x) { return at::hardswish(x); }},
};

struct Shape {
    std::vector<int64_t> x;  // images, channels, height, width
    int64_t out_channels, kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w, dilation_h,
        dilation_w, groups;
};

inline Shape square(std::vector<int64_t> x, int64_t out, int64_t kernel, int64_t stride = 1,
                    int64_t padding = 0, int64_t dilation = 1, int64_t groups = 1) {
    return {std::move(x), out,     kernel,   kernel,   stride, stride,
            padding,      padding, dilation, dilation, groups};
}

struct Call {
    Shape shape;
    Tensor x, weight, bias, mean, variance, gain, offset, residual;
    bool residual_last = false, channels_last = false;

    Call as(at::ScalarType dtype) const {
        Call other = *this;
        for (Tensor* one : {&other.x, &other.weight, &other.bias, &other.mean, &other.variance,
                            &other.gain, &other.offset, &other.residual})
            if (one->defined()) *one = one->to(dtype);
        return other;
    }

    // Undefined: the operator leaves it to LibTorch.
    Tensor run(const Activation& activation) const {
        const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
            (op_namespace() + "::conv2d").c_str(), "");
        torch::jit::Stack stack;
        for (const Tensor& one : {x, weight, bias, mean, variance, gain, offset})
            stack.push_back(one.defined() ? c10::IValue(one) : c10::IValue());
        stack.emplace_back(1e-5);
        stack.push_back(residual.defined() ? c10::IValue(residual) : c10::IValue());
        stack.emplace_back(residual_last);
        for (const int64_t number :
             {shape.stride_h, shape.stride_w, shape.padding_h, shape.padding_w, shape.dilation_h,
              shape.dilation_w, shape.groups, activation.code})
            stack.emplace_back(number);
        stack.emplace_back(channels_last);
        handle.callBoxed(stack);
        return stack.at(0).isNone() ? Tensor() : stack.at(0).toTensor();
    }

    Tensor original(const Activation& activation) const {
        const auto optional = [](const Tensor& one) {
            return one.defined() ? std::optional(one) : std::nullopt;
        };
        Tensor y = at::conv2d(x, weight, optional(bias), {shape.stride_h, shape.stride_w},
                              at::IntArrayRef{shape.padding_h, shape.padding_w},
                              {shape.dilation_h, shape.dilation_w}, shape.groups);
        if (mean.defined())
            y = at::batch_norm(y, optional(gain), optional(offset), mean, variance, false, 0.1,
                               1e-5, false);
        if (!residual.defined()) return activation.of(y);
        return residual_last ? activation.of(y) + residual : activation.of(y + residual);
    }
};

// What has x and a weight, and perhaps more: bias, normalization, a residual.
inline Call call_of(const Shape& shape, at::ScalarType dtype, int extras) {
    Call call{shape, random(shape.x, dtype, 1), {}, {}, {}, {}, {}, {}, {}};
    const int64_t channels = shape.x[1] / shape.groups;
    const double depth = double(channels * shape.kernel_h * shape.kernel_w);
    call.weight = random({shape.out_channels, channels, shape.kernel_h, shape.kernel_w}, dtype,
                         2 / std::sqrt(depth));
    const auto of_channels = [&] { return random({shape.out_channels}, dtype, 1); };
    if (extras & 1) call.bias = of_channels();
    if (extras & 2) {
        call.mean = of_channels();
        call.variance = of_channels().abs() + 0.5;
        call.gain = of_channels();
        call.offset = of_channels();
    }
    if (extras & 4)
        call.residual = random(call.as(at::kDouble).original(activations[0]).sizes(), dtype, 1);
    return call;
}

inline Tensor last(const Tensor& x) {
    return x.contiguous(at::MemoryFormat::ChannelsLast);
}

inline bool is_served(at::ScalarType dtype) {
    return call_of(square({1, 2, 3, 3}, 2, 1), dtype, 0).run(activations[0]).defined();
}

// The dtypes that this CPU's instruction set has convolutions for.
inline std::vector<at::ScalarType> served_dtypes() {
    std::vector<at::ScalarType> served;
    for (auto dtype : dtypes())
        if (is_served(dtype)) served.push_back(dtype);
    return served;
}

inline bool is_served_last(at::ScalarType dtype, int64_t channels) {
    Call call = call_of(square({1, channels, 3, 3}, 2, 1), dtype, 0);
    call.channels_last = true;
    const Tensor result = call.run(activations[0]);
    return result.defined() && !result.is_contiguous();
}
// … and those of them that it computes where channels lie last, however many there are.
inline std::vector<at::ScalarType> served_last() {
    std::vector<at::ScalarType> served;
    for (auto dtype : {at::kFloat, at::kBFloat16})
        if (is_served_last(dtype, 8) && is_served_last(dtype, 32)) served.push_back(dtype);
    return served;
}

inline bool has_last(at::ScalarType dtype) {
    const auto served = served_last();
    return std::find(served.begin(), served.end(), dtype) != served.end();
}

inline std::vector<std::pair<at::ScalarType, Shape>> each_with_each(
    const std::vector<at::ScalarType>& dtypes, const std::vector<Shape>& shapes) {
    std::vector<std::pair<at::ScalarType, Shape>> all;
    for (const auto dtype : dtypes)
        for (const Shape& shape : shapes) all.emplace_back(dtype, shape);
    return all;
}

// What conv2d_prepack makes of a weight. Undefined: it leaves the weight as it is.
inline Tensor prepacked(const Tensor& weight, int64_t groups = 1, bool channels_last = true) {
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(
        (op_namespace() + "::conv2d_prepack").c_str(), "");
    torch::jit::Stack stack{weight, groups, channels_last};
    handle.callBoxed(stack);
    return stack.at(0).isNone() ? Tensor() : stack.at(0).toTensor();
}

inline Call with_weight(const Call& call, const Tensor& weight) {
    Call other = call;
    other.weight = weight;
    return other;
}

// Sums of products, in any order: each half of a digit counts for every doubling of their number.
// Of half precisions the last rounding counts; LibTorch's own float16 takes seconds.
inline void check_right(const Call& call, const Activation& activation, const Tensor& result) {
    const Tensor exact = call.as(at::kDouble).original(activation);
    REQUIRE(result.defined());
    REQUIRE(result.sizes() == exact.sizes());
    if (call.channels_last)
        REQUIRE(result.is_contiguous(at::MemoryFormat::ChannelsLast));
    else
        REQUIRE(result.strides() == exact.strides());
    REQUIRE(result.scalar_type() == call.x.scalar_type());
    const auto error_of = [&](const Tensor& values) {
        return (values.to(at::kDouble) - exact).abs().max().item<double>();
    };
    const bool is_float = call.x.scalar_type() == at::kFloat;
    const double scale = exact.abs().max().item<double>(), error = error_of(result);
    const double theirs = is_float ? error_of(call.original(activation)) : 0;
    const double unit = is_float ? 1.2e-6 : result.scalar_type() == at::kHalf ? 1e-3 : 8e-3;
    INFO(at::toString(result.scalar_type())
         << " " << call.x.sizes() << " " << call.weight.sizes() << " activation " << activation.code
         << ": error " << error << ", LibTorch's " << theirs << ", largest value " << scale);
    CHECK(error <= std::max(1.5 * theirs, unit * scale));
}
inline void check_right(const Call& call, const Activation& activation) {
    check_right(call, activation, call.run(activation));
}

}  // namespace pack::conv
