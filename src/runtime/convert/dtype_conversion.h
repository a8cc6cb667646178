#pragma once
// A saved model in another floating dtype: its weights, and the constants in its code that name the
// dtype that it was traced in.

#include "twinkle/report.h"

#include <torch/script.h>

namespace twinkle::runtime {

// "bfloat16", "float16" or "float32"; throws Error(malformed) for another.
at::ScalarType floating_dtype(const std::string& name);

// Converts in place, and says what was done. As PyTorch's `.to(dtype)` does, but for buffers that
// the code reads as float32 and in no other way: rotary frequencies stay exact. Throws
// Error(refused), with the model as it was, where an operator would get two dtypes.
ConstantReport convert_dtype(torch::jit::Module& model, at::ScalarType to);

// What would have to be rewritten for another dtype, and that nobody has.
ConstantReport dtype_constants(const torch::jit::Module& model);

// The dtypes of the weights; of none where it has no floating one.
std::set<at::ScalarType> weight_dtypes(const torch::jit::Module& model);

// Rounds the weights to a dtype and keeps them in their own: what a model computes exactly that
// has been converted.
void round_weights(torch::jit::Module& model, at::ScalarType dtype);

}  // namespace twinkle::runtime
