#pragma once
// The rules for the libraries of a Hub kernel: which symbols and which other libraries they may
// need.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kernel/build.h"
#include "kernel/finding.h"
#include "kernel/variant.h"

namespace twinkle::kernel {

// The newest versions of symbols that may be needed: "GLIBC" → "2.28".
using SymbolLimits = std::map<std::string, std::string>;
const SymbolLimits& manylinux_limits();

struct AbiRules {
    std::optional<Variant> variant;
    // Limits of the machine that a build is for, where it is for no other one: what is newer than
    // manylinux_2_28 and not newer than this is only noted.
    std::optional<SymbolLimits> machine;
};

// `shown` is the library's path for messages.
void check_abi(const BuildLibrary& library, const std::string& shown, const AbiRules& rules,
               Findings& findings);

// Allows those of torch, of what it brings along for GPUs, and of the C and C++ runtime.
bool is_allowed_library(std::string_view name);

}  // namespace twinkle::kernel
