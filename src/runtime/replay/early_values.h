#pragma once
// What of a graph depends on nothing but constants and the sizes of tensors: positions, tables of
// rotations, masks. For inputs of one shape it is always the same, so that captured runs need not
// compute it again.

#include <torch/script.h>

#include <memory>

namespace twinkle::runtime {

// Takes such tensors out of an inlined graph, which from then on has them as its last inputs, in
// their order. Returns a graph with the inputs of before that computes them, as one tuple; null:
// there are none, and nothing was changed. Tensors stay that something may write or that the graph
// may return, and what is computed from larger weights, which would take memory. `self`: the object
// that the graph's first input will be.
std::shared_ptr<torch::jit::Graph> take_early_values(
    const std::shared_ptr<torch::jit::Graph>& graph, const c10::ivalue::Object& self);

}  // namespace twinkle::runtime
