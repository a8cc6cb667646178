#pragma once
// A model in which every operator rounds its result to a dtype: the yardstick for a model that was
// converted to that dtype.

#include "runtime/model/inputs.h"
#include "runtime/verify/perturbed_originals.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// Rounds its weights, and every floating-point result in its graphs, to the dtype. Their own dtypes
// stay.
void round_model(torch::jit::Module& model, at::ScalarType dtype);

// Runs it on inputs of any dtype, with results in the dtypes of `result`, which is compared. Its
// own inputs have the dtype in which it computes: wider than what its results are rounded to, so
// that they can differ by less.
Yardstick rounded_yardstick(const torch::jit::Module& rounded, const std::string& method,
                            const Inputs& inputs, const c10::IValue& result);

}  // namespace twinkle::runtime
