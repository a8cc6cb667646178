#pragma once
// What a model is kernelized for (mode, device), by the options or the model itself.

#include "runtime/selection/selection.h"

#include <torch/script.h>

#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// `mode` if given, normalized; else training if any module of the model is in training.
std::string mode_for(const torch::jit::Module& model, const std::optional<std::string>& mode);

// `device` if given ("metal" is mps, "cuda:1" is cuda); else that of the parameters, with a warning
// if there are several. Throws Error(malformed): no such device, or nothing that tells it.
std::string device_for(const torch::jit::Module& model, const std::optional<std::string>& device,
                       std::vector<std::string>& warnings);

// major * 10 + minor of a GPU given by number ("cuda:1"): GPUs of one machine may differ. None: no
// number, or the driver knows no such GPU.
std::optional<int> named_capability(const std::optional<std::string>& device);

}  // namespace twinkle::runtime
