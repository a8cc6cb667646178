#pragma once
// Finds the LibTorch of a runtime on this machine: packages do not know its place when they are
// built.

#include <filesystem>

#include "target/machine.h"
#include "target/runtime.h"

namespace twinkle::target {

// The folder of libtorch.so, the first of: TWINKLE_TORCH (an unpacked libtorch, or
// site-packages/torch), that of runtime.json, the active Python environment (VIRTUAL_ENV,
// CONDA_PREFIX), the usual places of the system. Accepts only LibTorch of the runtime's version and
// backend. Throws Error(not_found) with the places that were searched, Error(refused) if
// TWINKLE_TORCH is another LibTorch.
std::filesystem::path find_torch_lib(const Runtime& runtime, const Machine& machine);

}  // namespace twinkle::target
