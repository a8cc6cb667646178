#pragma once
// /proc/cpuinfo, from which a handful of features decide between kernels.

#include <string_view>

#include "target/machine.h"

namespace twinkle::target {

// Model and features only; architecture and cores come from elsewhere.
CpuFacts read_cpuinfo(std::string_view text);

}  // namespace twinkle::target
