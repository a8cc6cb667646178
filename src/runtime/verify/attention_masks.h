#pragma once
// Masks that are added to attention scores, in the dtype that LibTorch's attention reads.

#include <torch/csrc/jit/ir/ir.h>

namespace twinkle::runtime {

bool is_masked_attention(const torch::jit::Node* node);

// Converts a floating-point mask to the query's dtype. LibTorch accepts a float32 mask beside a
// float64 query, and reads its bytes as float64 on a CPU.
void convert_mask(torch::jit::Node* attention);

}  // namespace twinkle::runtime
