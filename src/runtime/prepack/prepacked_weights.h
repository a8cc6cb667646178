#pragma once
// Weights laid out as the kernels of a model read them on this machine, once, when it is loaded.

#include <torch/script.h>

#include <cstddef>

namespace twinkle::runtime {

// Puts prepacked tensors in the place of weights of a model in eval mode, where the methods of its
// root, with all that they call, give them to such kernels alone (weight_calls.h) and nothing else
// holds them: the plain ones are freed. Moves the other large ones (moved_weights.h). Where a
// kernel fails, weights stay as they were. Returns how many there are now.
std::size_t prepack_weights(const torch::jit::Module& model);

// Whether there are weights that a kernel may have so.
bool may_prepack_weights(const torch::jit::Module& model);

}  // namespace twinkle::runtime
