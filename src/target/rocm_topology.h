#pragma once
// AMD GPUs as the kernel driver lists them, without loading ROCm.

#include <filesystem>
#include <vector>

#include "target/machine.h"

namespace twinkle::target {

std::vector<Gpu> read_rocm_topology(const std::filesystem::path& nodes);

}  // namespace twinkle::target
