#pragma once
// Replaces a region by the call of a function.

#include "runtime/trace/region.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <tl/expected.hpp>

#include <string>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

// Nodes that are destroyed: other regions may have held them.
using DestroyedNodes = std::unordered_set<const torch::jit::Node*>;

// `function` takes the inputs of the region, and gives its result, or a tuple of them. The call is
// placed where the region ends, with the source range of its last node. Unused nodes are destroyed;
// regions that use the region's results must be closed again. The error says why there is no place
// for a call; the graph is then as it was.
tl::expected<DestroyedNodes, std::string> call_in_place_of(const Region& region,
                                                           torch::jit::Function& function);

// Inserts a call at the graph's insert point; returns its result, or the `count` elements of a
// tuple.
std::vector<torch::jit::Value*> insert_call(torch::jit::Graph& graph,
                                            torch::jit::Function& function,
                                            const std::vector<torch::jit::Value*>& arguments,
                                            std::size_t count,
                                            const torch::jit::SourceRange& range);

// Redirects a call of a function to another one.
void call_instead(torch::jit::Node* call, torch::jit::Function* function);

}  // namespace twinkle::runtime
