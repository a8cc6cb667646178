#pragma once
// LibTorch takes the sizes and strides of a saved tensor as they come.

#include <torch/script.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// What is wrong with a tensor of the model (a weight, an attribute, a constant of a graph) that
// reaches out of its memory. Nothing: none does.
std::optional<std::string> invalid_tensor(const torch::jit::Module& model);

}  // namespace twinkle::runtime
