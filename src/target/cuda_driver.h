#pragma once
// GPU facts through the driver's own library (libcuda.so.1), never the toolkit.

#include <optional>

#include "target/machine.h"

namespace twinkle::target {

// None: no driver, no device, or it does not start.
std::optional<CudaDriver> ask_cuda_driver();

}  // namespace twinkle::target
