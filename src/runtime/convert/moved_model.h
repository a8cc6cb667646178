#pragma once
// A model on another device than the one that it was loaded to.

#include <torch/script.h>

namespace twinkle::runtime {

// A copy with everything that it holds on `device`; what is there already is shared. What its code
// holds, the constants of a frozen model, is moved too, and the code is shared: the original does
// not run any more afterwards.
torch::jit::Module moved_to(const torch::jit::Module& model, const torch::Device& device);

// The model itself, and what its code holds.
void move_to(torch::jit::Module& model, const torch::Device& device);

}  // namespace twinkle::runtime
