#pragma once
// What a model would be worth in a dtype if every operator rounded its result to it: the measure
// for a model that was converted to that dtype.

#include "runtime/model/inputs.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// Rounds its weights to the dtype, and every floating-point result in its graphs. All of them stay
// in their own dtype.
void round_model(torch::jit::Module& model, at::ScalarType dtype);

// What it gives for inputs of any dtype, in the dtypes of the result that it is the measure for.
c10::IValue run_rounded(const torch::jit::Module& rounded, const std::string& method,
                        const Inputs& inputs, const c10::IValue& result);

}  // namespace twinkle::runtime
