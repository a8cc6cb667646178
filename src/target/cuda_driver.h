#pragma once
// GPU facts from the driver's library (libcuda.so.1), never the toolkit.

#include <optional>
#include <string>

#include "target/machine.h"

namespace twinkle::target {

// `library`: a file, or a name for the loader. None: no driver, no device, or it does not
// start.
std::optional<CudaDriver> ask_cuda_driver(const std::string& library = "libcuda.so.1");

// The same in a child process: the driver is then not started in this one, so that children forked
// later can use it.
std::optional<CudaDriver> ask_cuda_driver_aside(const std::string& library = "libcuda.so.1");

}  // namespace twinkle::target
