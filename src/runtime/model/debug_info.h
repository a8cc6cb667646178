#pragma once
// Where the code of a model came from: Python stacks with the paths of the machine that traced it,
// or the source that was scripted.

#include <torch/script.h>

namespace twinkle::runtime {

// Removes all of it, in memory; the saved file then has none.
void strip_debug_info(const torch::jit::Module& model);

}  // namespace twinkle::runtime
