#pragma once
// Where the LibTorch of a runtime is on this machine: packages do not know it when they are built.

#include <filesystem>

#include "target/machine.h"
#include "target/runtime.h"

namespace twinkle::target {

// The folder of libtorch.so, the first of: TWINKLE_TORCH (an unpacked libtorch, or
// site-packages/torch), what runtime.json says, the active Python environment (VIRTUAL_ENV,
// CONDA_PREFIX), the usual places of the system. Only LibTorch of the runtime's version and backend
// will do. Throws Error(not_found) with the places that were looked at, Error(refused) where
// TWINKLE_TORCH is another LibTorch.
std::filesystem::path find_torch_lib(const Runtime& runtime, const Machine& machine);

}  // namespace twinkle::target
