#pragma once
// An operator whose schema does not tell that it has effects: LibTorch takes it for pure, leaves it
// out where nobody uses its result, and calls it once for two equal calls.

#include <torch/csrc/jit/ir/ir.h>

namespace twinkle::runtime {

// Puts `twinkle::has_effect(value)` at the insert point, which does nothing. Around the results and
// objects of such an operator it keeps the call, and each of equal ones.
void write_effect_of(torch::jit::Graph& graph, torch::jit::Value* value);

}  // namespace twinkle::runtime
