#pragma once
// A piece of a graph that one call of a function can replace, with its inputs and results.

#include <torch/csrc/jit/ir/ir.h>

#include <tl/expected.hpp>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

struct Region {
    std::vector<torch::jit::Node*> nodes;  // in the order of the graph
    // Nodes before it of which it gets copies: numbers made of numbers, so that a size that is used
    // as an integer and as a tensor is one input, and nodes that it shares with other regions.
    std::vector<torch::jit::Node*> copied;
    // Weights that freezing has made constants are inputs, other constants are part of the code.
    std::vector<torch::jit::Value*> inputs;   // in the order of their first use
    std::vector<torch::jit::Value*> results;  // used outside, in the order of the graph
    // Values used outside as well that are not its purpose, so that their own nodes go on computing
    // them: numbers, an input under another dtype or view (in float32 a trace hands on the cast
    // that a function has made), shared values.
    std::vector<torch::jit::Value*> leaks;
};

// Facts on the graph around regions.
struct Surroundings {
    // Whether a node must not be taken in, though it lies on a path through the region.
    std::function<bool(const torch::jit::Node*)> is_foreign;
    // Nodes that several regions need (freezing merges equal ones).
    std::unordered_set<const torch::jit::Node*> shared;
    // written_roots() of the graph.
    std::set<const torch::jit::Value*> written;
};

// Closes nodes of one block: every node on a path from one of them to another joins the region. The
// error says why they cannot be replaced as one.
tl::expected<Region, std::string> region_of(const std::vector<torch::jit::Node*>& nodes,
                                            const Surroundings& around = {});

// The region as a graph: its inputs, and its result, or a tuple of them.
std::shared_ptr<torch::jit::Graph> graph_of(const Region& region);

}  // namespace twinkle::runtime
