#pragma once
// Weights that keep their layout, one behind the other in memory of large pages.

#include "runtime/prepack/freed_weights.h"
#include "runtime/prepack/weight_memory.h"

#include <torch/script.h>

namespace twinkle::runtime {

// Moves large dense tensors that the model alone holds, parameters and buffers of its objects: each
// as often as the model has it, so that what is tied stays tied. Those that lie in a file, or in
// memory that a program manages, stay there. Without effect where the system has no huge pages.
void move_weights(const torch::jit::Module& model, WeightMemory& memory, FreedWeights& freed);

}  // namespace twinkle::runtime
