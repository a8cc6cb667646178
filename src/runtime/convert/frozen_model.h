#pragma once
// A kernelized model as torch::jit::freeze makes it.

#include <torch/script.h>

namespace twinkle::runtime {

// Its methods and labels stay: freezing alone would keep forward() and no attribute. For `device`:
// what the code asks its weights for, freezing makes the device that they are on, which is released
// again (device_constants.h). Throws what LibTorch throws: the model is in training, for one.
torch::jit::Module frozen_model(const torch::jit::Module& root, const torch::Device& device);

}  // namespace twinkle::runtime
