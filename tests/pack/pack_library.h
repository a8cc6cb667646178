#pragma once
// Loads the built pack as a server would: dlopen, then the dispatcher.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

// LibTorch's headers define a CHECK of their own, which ends the process.
#undef CHECK
#include "catch.h"

namespace pack {

using at::Tensor;
using Tensors = std::vector<Tensor>;

const std::string& op_namespace();

// Calls an operator. An undefined tensor is None; omitted numbers have their
// defaults.
Tensors call(const std::string& op, const Tensors& tensors,
             const std::vector<c10::IValue>& numbers = {});

// The rule of the project: at most 1.5 times the original's own largest error, or a floor by dtype,
// relative to the largest value. On failure the numbers are in `text`.
struct Verdict {
    bool right;
    std::string text;
};
// `float_units`: the error allowed in float32, in units of the last place of the largest value.
Verdict judge(const Tensor& result, const Tensor& original, const Tensor& exact,
              double float_units = 0.8);
// For norms, whose sums may be rounded in any order: on an H200 5 of 9,500 rows are off by more
// than one unit, at most by 1.18. PyTorch's on a CPU, of 3,000 rows, by up to 1.7.
constexpr double norm_float_units = 1.2;
// For gelu: x / 2 + x (Phi(x) - 1/2), where each rounding of a quotient of two polynomials counts:
// 1.00 unit with fused multiplication and addition, 1.17 without. PyTorch's, of oneDNN, is off by
// 0.41 with AVX2 and 0.51 without oneDNN.
constexpr double gelu_float_units = 1.25;

// The device of the tests' tensors: the CPU, or TWINKLE_PACK_DEVICE (cuda).
at::Device device();
inline Tensor here(const Tensor& tensor) {
    return tensor.to(device());
}

const std::vector<at::ScalarType>& dtypes();  // that all operators compute
Tensor random(at::IntArrayRef shape, at::ScalarType dtype, double scale = 3);

// Views of one shape, [4, 6, n], as a model may produce them.
Tensors layouts(int64_t n, at::ScalarType dtype);

// The message with which a call is refused; empty if it is not.
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

inline bool has(const std::string& text, const std::string& part) {
    UNSCOPED_INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace pack
