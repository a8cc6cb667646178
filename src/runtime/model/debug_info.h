#pragma once
// Where the code of a model came from: Python stacks with the paths of the machine that traced it,
// or the source that was scripted.

#include <torch/script.h>

namespace twinkle::runtime {

// Forgets all of it, in memory. What is saved afterwards holds none.
void strip_debug_info(const torch::jit::Module& model);

}  // namespace twinkle::runtime
