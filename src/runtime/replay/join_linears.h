#pragma once
// Linear layers that read one input (q, k and v; gate and up) as one: a GPU waits some microseconds
// for each kernel, whatever its size. Their weights are copied, one below the other, where they do
// not lie so (gather_weights.h).

#include <torch/script.h>

#include <cstddef>

namespace twinkle::runtime {

struct JoinedLinears {
    std::size_t layers = 0;  // that are parts of another now
    std::size_t bytes = 0;   // of copied weights and biases
};

// Joins the groups of linear_groups.h in a graph that nobody has run, which it inlines. Copies take
// up to an eighth of the weights that the graph reads on such devices, or 64 MB; small groups, of
// which the wait is the larger part, come first. Results are views of one tensor; those of the
// graph are not, if they are to be dense.
JoinedLinears join_linears(const std::shared_ptr<torch::jit::Graph>& graph,
                           const c10::ivalue::Object& self, c10::DeviceType type,
                           bool dense_results);

}  // namespace twinkle::runtime
