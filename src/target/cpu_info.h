#pragma once
// /proc/cpuinfo, of which kernels choose by a handful of features.

#include <string_view>

#include "target/machine.h"

namespace twinkle::target {

// Model and features; architecture and cores are not in it.
CpuFacts read_cpuinfo(std::string_view text);

}  // namespace twinkle::target
