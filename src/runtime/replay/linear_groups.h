#pragma once
// Linear layers of a graph that read one input, and could be computed as one.

#include <torch/script.h>

#include <cstddef>
#include <vector>

namespace twinkle::runtime {

struct LinearLayer {
    torch::jit::Node* node = nullptr;  // (x, weights…, bias)
    std::vector<at::Tensor> weights;   // a row of each for each output
    at::Tensor bias;                   // undefined: none

    std::int64_t outputs() const { return weights[0].size(0); }
    std::size_t bytes() const;
};

// At least two, of one block of the graph and in its order, whose weights fit below one another.
using LinearGroup = std::vector<LinearLayer>;
std::size_t bytes_of(const LinearGroup& group);

// Layers are aten::linear, and those of the bundled kernels with fewer bits, whose weights are of
// this device, and nothing in the graph writes them, the input or the result. Left out is
// one whose result, or a view of it, may reach what needs a dense tensor: kernels of somebody else,
// which were tried with those, operators that take strides, and results of the graph, if
// `dense_results`. `self`: the object that the graph's first input will be. The graph is inlined.
std::vector<LinearGroup> linear_groups(const std::shared_ptr<torch::jit::Graph>& graph,
                                       const c10::ivalue::Object& self, c10::DeviceType type,
                                       bool dense_results);

}  // namespace twinkle::runtime
