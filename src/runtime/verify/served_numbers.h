#pragma once
// Numbers that a trace keeps as tensors without dimensions, as programs compute with them.

#include <torch/script.h>

namespace twinkle::runtime {

// LibTorch's optimizer takes them for numbers: `torch.arange(n) * 0.5` is float32 then, as it was
// when it was traced, and float64 where nothing is optimized, as in a run that is the only one.
// Rewrites the graphs so that both are the same.
void take_numbers_as_served(const torch::jit::Module& model);

}  // namespace twinkle::runtime
