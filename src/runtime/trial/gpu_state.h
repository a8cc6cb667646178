#pragma once
// What runs have left behind on a GPU.

#include <ATen/core/Tensor.h>

#include <optional>

namespace twinkle::runtime {

// Waits until what was ordered on the device's current stream is done.
void wait_for(const at::Device& device);
// Whether the device still works in this process: after a kernel's fault none of its calls does.
bool still_works(const std::optional<at::Device>& device);

}  // namespace twinkle::runtime
