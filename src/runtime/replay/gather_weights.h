#pragma once
// Weights of linear layers that read one input (linear_groups.h), one below the other in memory, so
// that joining the layers copies nothing (join_linears.h).

#include <torch/script.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace twinkle::runtime {

// Puts the weights of packed layers together, and makes a frozen graph's constants views of these.
// Only such weights are moved as nobody but the graph holds: else the device would have them twice.
// For a moment it has those of one group twice; where there is no memory for that, the rest stays.
// Returns the bytes that are free now where weights were. `self`: the object that the graph's first
// input will be.
std::size_t gather_weights(const std::shared_ptr<torch::jit::Graph>& graph,
                           const c10::ivalue::Object& self, c10::DeviceType type);

// The tensors one below the other, as LibTorch joins them on every device.
at::Tensor below_one_another(const std::vector<at::Tensor>& tensors);
// The same without a copy, if they lie so already; undefined: they do not.
at::Tensor gathered(const std::vector<at::Tensor>& tensors);

}  // namespace twinkle::runtime
