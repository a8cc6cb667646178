#pragma once
// Build variants of the Kernel Hub: what a folder name below build/ says, whether such a build runs
// on a target, and which of several is better.
//
//     torchMm[-cxx11|-cxx98]-B-CPU-OS   torch-stable-abiMm-B-CPU-OS   tvm-ffiMm-B-CPU-OS
//     torch-<backend name>              torch-universal               (noarch: Python only)

#include <optional>
#include <string>
#include <string_view>

#include "target/target.h"

namespace twinkle::kernel {

enum class Framework { stable_abi, torch, tvm_ffi, noarch };  // in order of preference

struct Variant {
    std::string name;
    Framework framework = Framework::noarch;
    target::Version version;    // of the framework; 0.0 for noarch
    std::optional<bool> cxx11;  // the tag of a torch variant
    target::Backend backend;    // of a build with code
    std::string cpu;
    std::string os;
    std::string noarch_backend;  // "cuda", "npu", "universal"; empty for a build with code
};

std::optional<Variant> parse_variant(std::string_view name);

struct Judgement {
    bool accepted = false;
    std::string reason;
};

// Whether a build of this name runs on `device` of the target ("cpu" or that of its backend).
Judgement judge_variant(const Variant& variant, const target::Target& target,
                        std::string_view device);

// A strict order: true if `a` is to be preferred to `b`; both accepted for the same device.
bool is_preferred(const Variant& a, const Variant& b);

}  // namespace twinkle::kernel
