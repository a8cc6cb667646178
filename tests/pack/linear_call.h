#pragma once
// Linear layers with random weights, and what their results are held against.

#include <algorithm>
#include <cmath>

#include "pack_library.h"

namespace pack::linear_layers {

struct Size {
    int64_t depth, columns;
};
inline Tensor weight(const Size& size, at::ScalarType dtype) {
    return random({size.columns, size.depth}, dtype, 2 / std::sqrt(double(size.depth)));
}

inline Tensor layer(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return at::linear(x, weight, bias.defined() ? std::optional(bias) : std::nullopt);
}

// Sums of products, in any order: each half of a digit counts for every doubling of their number.
inline void check_close(const Tensor& result, const Tensor& original, const Tensor& exact) {
    const double scale = exact.abs().max().item<double>();
    const double error = (result.to(at::kDouble) - exact).abs().max().item<double>();
    const double theirs = (original.to(at::kDouble) - exact).abs().max().item<double>();
    const at::ScalarType dtype = result.scalar_type();
    const double unit = dtype == at::kDouble  ? 1e-15
                        : dtype == at::kFloat ? 1.2e-6
                        : dtype == at::kHalf  ? 1e-3
                                              : 8e-3;
    INFO(at::toString(dtype) << " " << result.sizes() << ": error " << error << ", LibTorch's "
                             << theirs << ", largest value " << scale);
    REQUIRE(result.sizes() == original.sizes());
    REQUIRE(result.scalar_type() == original.scalar_type());
    CHECK(error <= std::max(1.5 * theirs, unit * scale));
}

struct Activation {
    const char* name;
    Tensor (*of)(const Tensor&);
};

inline const Activation activations[] = {
    {"silu", [](const Tensor& x) { return at::silu(x); }},
    {"gelu", [](const Tensor& x) { return at::gelu(x); }},
    {"gelu_tanh", [](const Tensor& x) { return at::gelu(x, "tanh"); }},
    {"relu", [](const Tensor& x) { return at::relu(x); }},
};

inline Tensor wide(const Tensor& tensor) {
    return tensor.defined() ? tensor.to(at::kDouble) : tensor;
}

}  // namespace pack::linear_layers
