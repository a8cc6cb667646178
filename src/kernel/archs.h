#pragma once
// Whether a build for these GPU architectures ("backend.archs" of its metadata) runs on a GPU.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "target/backend.h"

namespace twinkle::kernel {

// One CUDA architecture as builds declare it: "9.0", "9.0+PTX", "9.0a", "10.0f". None: an unknown
// spelling, which decides nothing.
std::optional<bool> cuda_arch_supports(std::string_view arch, target::Version capability);

// True where nothing speaks against it: no architectures, or none that is understood. `device` is
// "9.0" or "gfx942:sramecc+".
bool archs_support(std::span<const std::string> archs, target::BackendKind kind,
                   std::string_view device);

}  // namespace twinkle::kernel
