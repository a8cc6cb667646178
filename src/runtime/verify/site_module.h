#pragma once
// A site as a module that runs alone.

#include <torch/script.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// The instance under a path; for a call of a function, a module whose forward is the function
// called there now. None: the model has no such site (any more).
std::optional<torch::jit::Module> module_at(const torch::jit::Module& model,
                                            const std::string& site);

// A module whose forward is this graph.
torch::jit::Module module_of(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace twinkle::runtime
