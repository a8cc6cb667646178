#pragma once
// LibTorch does not check the sizes and strides of a saved tensor.

#include <torch/script.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// Describes a tensor of the model (a weight, an attribute, a constant of a graph) that reaches out
// of its memory. Nothing: there is none.
std::optional<std::string> invalid_tensor(const torch::jit::Module& model);

}  // namespace twinkle::runtime
