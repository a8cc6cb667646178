#pragma once
// Masks that are added to attention scores, in the dtype that LibTorch's attention reads.

#include <torch/script.h>

namespace twinkle::runtime {

// Converts floating-point masks to their queries' dtype. LibTorch accepts a float32 mask beside a
// float64 query, and reads its bytes as float64 on a CPU.
void convert_masks(const torch::jit::Module& model);

}  // namespace twinkle::runtime
