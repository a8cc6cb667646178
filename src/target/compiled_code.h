#pragma once
// Machine code that a compiler made for one machine (AOTInductor's packages say which), held
// against another.

#include <optional>
#include <string>
#include <vector>

#include "target/target.h"

namespace twinkle::target {

// As the package says it; empty: it does not say.
struct CompiledFor {
    std::string device;            // cpu, cuda, xpu
    std::string os;                // linux
    std::string cpu;               // x86_64, aarch64
    std::vector<std::string> isa;  // "AVX512", "AVX512_VNNI": all are needed
    std::string capability;        // of a CUDA GPU: "90", "9.0"
};

// 90, and "9.0"; none: it is for no GPU, or does not say for which.
std::optional<int> capability_number(const CompiledFor& code);
std::optional<std::string> capability_text(const CompiledFor& code);

// Why the code does not run on the target, a line each; empty: it does, as far as both say.
// `cpu_features` are those of the target's CPU (CpuFacts); none: they are not known.
std::vector<std::string> reasons_against(
    const CompiledFor& code, const Target& target,
    const std::optional<std::vector<std::string>>& cpu_features);

}  // namespace twinkle::target
