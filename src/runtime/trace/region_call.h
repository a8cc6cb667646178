#pragma once
// Puts the call of a function in the place of a region.

#include "runtime/trace/region.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <tl/expected.hpp>

#include <string>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

// Nodes that are no more: other regions may have held them.
using DestroyedNodes = std::unordered_set<const torch::jit::Node*>;

// `function` takes the inputs of the region, and gives its result, or a tuple of them. The call
// stands where the region ends, with the source range of its last node. Nodes that nothing uses
// any more are destroyed; regions that take what they gave are to be closed again. The error says
// why there is no place for a call; the graph is then as it was.
tl::expected<DestroyedNodes, std::string> call_in_place_of(const Region& region,
                                                           torch::jit::Function& function);

// A call at the graph's insert point; its result, or the elements of the tuple of `count` results.
std::vector<torch::jit::Value*> insert_call(torch::jit::Graph& graph,
                                            torch::jit::Function& function,
                                            const std::vector<torch::jit::Value*>& arguments,
                                            std::size_t count,
                                            const torch::jit::SourceRange& range);

// Lets a call of a function call another one.
void call_instead(torch::jit::Node* call, torch::jit::Function* function);

}  // namespace twinkle::runtime
