#pragma once
// Sites: the instances of a model, with their path in the module tree and their class.

#include <torch/script.h>

#include <string>
#include <vector>

namespace twinkle::runtime {

struct Instance {
    std::string path;        // "model.layers.0.mlp"; the root is ""
    std::string class_name;  // without mangling
    torch::jit::Module module;
};

// Every module of the tree once, parents before children, in the order of the attributes. An
// instance reachable under two paths is listed under the first.
std::vector<Instance> instances_of(const torch::jit::Module& root);

// The instance under a path that instances_of() gave.
torch::jit::Module instance_at(const torch::jit::Module& root, const std::string& path);

}  // namespace twinkle::runtime
