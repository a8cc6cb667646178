#pragma once
// LibTorch's product of groups (aten::_grouped_mm), by which transformers computes mixtures of
// experts, takes no float64.

#include <torch/csrc/jit/ir/ir.h>

namespace twinkle::runtime {

bool is_grouped_product(const torch::jit::Node* node);

// Puts code in the node's place that computes the same, in double precision where it gets that.
void take_double(torch::jit::Node* product);

}  // namespace twinkle::runtime
