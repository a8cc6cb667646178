#pragma once
// Whether a build has code for the GPUs of this machine, asked before anything of it is loaded.

#include "twinkle/mapping.h"

namespace twinkle::runtime {

// Throws Error(refused), with the architectures, where it is for a GPU and none of those that are
// here can run it. A machine without a GPU, or without its driver, tells nothing.
void require_gpu_code(const MappedKernel& kernel);

}  // namespace twinkle::runtime
