#pragma once
// GPU facts through the driver's own library (libcuda.so.1), never the toolkit.

#include <optional>
#include <string>

#include "target/machine.h"

namespace twinkle::target {

// By its file, or by the name under which the loader finds it. None: no driver, no device, or it
// does not start.
std::optional<CudaDriver> ask_cuda_driver(const std::string& library = "libcuda.so.1");

// The same, asked in a child process: this one has not started the driver then, so children that it
// forks later can.
std::optional<CudaDriver> ask_cuda_driver_aside(const std::string& library = "libcuda.so.1");

}  // namespace twinkle::target
