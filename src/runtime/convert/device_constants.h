#pragma once
// Devices that the code of a model names: a trace holds the one that it was made on.

#include "twinkle/report.h"

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// Where the code makes or moves a tensor to a device by name.
ConstantReport device_constants(const torch::jit::Module& model);

// Lets those that are not `device` be the one that the model's weights are on when it runs, so that
// it runs wherever it is moved to. Where a method has neither weights nor a tensor among its
// inputs, the device is named that the model is for.
ConstantReport release_devices(torch::jit::Module& model, const torch::Device& device);

}  // namespace twinkle::runtime
