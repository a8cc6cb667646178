#pragma once
// Every node of a graph, every function of a model.

#include <torch/script.h>

#include <functional>
#include <vector>

namespace twinkle::runtime {

// The nodes of a block and of the blocks inside of them, in their order.
void for_each_node(const torch::jit::Block* block,
                   const std::function<void(const torch::jit::Node*)>& visit);

// The same, and the nodes of what they fork.
void for_each_node_and_forked(const torch::jit::Block* block,
                              const std::function<void(const torch::jit::Node*)>& visit);

// The graphs of all functions in the model's compilation units: methods, hooks and what they call.
// Methods that were taken away again are left out; LibTorch keeps an empty place for them.
std::vector<std::shared_ptr<torch::jit::Graph>> graphs_of(const torch::jit::Module& model);

bool is_tensor_constant(const torch::jit::Node* node);

// What freezing has made of weights: the constants in these functions, and in what they fork, that
// are tensors. None is undefined.
std::vector<torch::jit::Node*> tensor_constants(const torch::jit::Module& model);

}  // namespace twinkle::runtime
