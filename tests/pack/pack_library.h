#pragma once
// The built pack, loaded as a server would load it: dlopen, then the dispatcher.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <string>

// LibTorch's headers define a CHECK of their own, which ends the process.
#undef CHECK
#include "catch.h"

namespace pack {

const std::string& op_namespace();

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);

// The originals, as transformers writes them, in the dtype of their inputs…
at::Tensor original_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor original_silu_mul(const at::Tensor& gate, const at::Tensor& up);
// … and exact: in double, without rounding between the steps.
at::Tensor exact_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor exact_silu_mul(const at::Tensor& gate, const at::Tensor& up);

// The rule of the project: at most 1.5 times the original's own largest error, or a floor by dtype,
// relative to the largest value. On failure the numbers are in `text`.
struct Verdict {
    bool right;
    std::string text;
};
Verdict judge(const at::Tensor& result, const at::Tensor& original, const at::Tensor& exact);

}  // namespace pack
