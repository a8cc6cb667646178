#pragma once
// What a model would be worth in a dtype if every operator rounded its result to it: the measure
// for a model that was converted to that dtype.

#include <torch/script.h>

namespace twinkle::runtime {

// Lets every floating-point result in the graphs of the model be rounded to the dtype, and stay in
// its own. The model is not fit for saving afterwards.
void round_results(torch::jit::Module& model, at::ScalarType dtype);

}  // namespace twinkle::runtime
