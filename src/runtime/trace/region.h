#pragma once
// A piece of a graph that one call of a function can stand for: what goes in, what comes out.

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
    // Nodes in front of it that it gets copies of: numbers made of numbers, so that a size that is
    // used as an integer and as a tensor is one input, and what it shares with other regions.
    std::vector<torch::jit::Node*> copied;
    // Weights that freezing has made constants are inputs, other constants are part of the code.
    std::vector<torch::jit::Value*> inputs;   // in the order of their first use
    std::vector<torch::jit::Value*> results;  // used outside, in the order of the graph
    // Used outside as well, but not what it is there for, so that they stay computed by their
    // nodes: numbers, an input under another dtype or view (in float32 a trace hands on the cast
    // that a function has made), what is shared.
    std::vector<torch::jit::Value*> leaks;
};

// What is known of the graph around regions.
struct Surroundings {
    // Whether a node must not be taken in, though it lies on a way through the region.
    std::function<bool(const torch::jit::Node*)> is_foreign;
    // Nodes that several regions need (freezing merges equal ones).
    std::unordered_set<const torch::jit::Node*> shared;
    // written_roots() of the graph.
    std::set<const torch::jit::Value*> written;
};

// Closes nodes of one block: what lies on a way from one of them to another is part of the region.
// The error says why they cannot be replaced as one.
tl::expected<Region, std::string> region_of(const std::vector<torch::jit::Node*>& nodes,
                                            const Surroundings& around = {});

// The region by itself: its inputs, and its result, or a tuple of them.
std::shared_ptr<torch::jit::Graph> graph_of(const Region& region);

}  // namespace twinkle::runtime
