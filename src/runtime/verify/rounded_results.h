#pragma once
// A model in which every operator rounds its result to a dtype: the yardstick for a model that was
// converted to that dtype.

#include "runtime/model/inputs.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// Rounds its weights, and every floating-point result in its graphs, to the dtype. Their own dtypes
// stay.
void round_model(torch::jit::Module& model, at::ScalarType dtype);

// Inputs in the dtype in which it computes: wider than what its results are rounded to, so that
// they can differ by less.
Inputs inputs_of_rounded(const torch::jit::Module& rounded, const Inputs& inputs);

// Runs it on inputs of any dtype, and returns results in the dtypes of `result`, which is compared.
c10::IValue run_rounded(const torch::jit::Module& rounded, const std::string& method,
                        const Inputs& inputs, const c10::IValue& result);

}  // namespace twinkle::runtime
