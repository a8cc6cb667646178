#pragma once
// A choice among pieces of code, made in each call by the number of elements of one tensor, in
// plain TorchScript: aten::numel, comparisons with constants and prim::If. It has no state and no
// lock, so that it survives saving, freezing, threads and CUDA graphs without libtwinkle's help.

#include <torch/csrc/jit/ir/ir.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace twinkle::runtime {

struct Alternative {
    std::int64_t up_to = 0;  // elements for which it is taken; of the last one it means nothing
    // Inserts its code at the graph's insert point, and returns its result.
    std::function<torch::jit::Value*(torch::jit::Graph& graph)> insert;
};

// Inserts nested binary decisions by the elements of the tensor `by`, at the graph's insert point.
// The alternatives are ordered by `up_to`, and their results have one type. Returns the result of
// the one that a call takes; of a single alternative nothing but its own code is inserted.
torch::jit::Value* insert_choice(torch::jit::Graph& graph, torch::jit::Value* by,
                                 const std::vector<Alternative>& alternatives);

// Whether a choice can be made by this value.
bool has_elements(const torch::jit::Value* value);

}  // namespace twinkle::runtime
