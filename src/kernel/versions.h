#pragma once
// The builds of a kernel in order of preference, with the reason for each: what `twinkle versions`
// prints and what the resolver decides by.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/variant.h"
#include "target/target.h"

namespace twinkle::kernel {

struct VariantChoice {
    std::string name;
    std::string device;  // that it was judged for: the one its backend runs on
    bool accepted = false;
    bool preferred = false;  // the first accepted one of its device
    // Not accepted for a GPU, but fit for the CPU beside it: models there can use it.
    bool for_cpu = false;
    bool broken = false;  // its name fits, but its metadata cannot be read
    std::string reason;   // one line, for accepted ones too
};

// The GPU architectures of a build, asked for only where they decide. May throw Error.
using ReadArchs = std::function<std::vector<std::string>()>;

// A build that need not be on this machine.
struct OfferedVariant {
    std::string name;
    ReadArchs archs;
};

// Ranks for the target's own backend. Accepted come before rejected, preferred first; equal input
// gives equal order.
std::vector<VariantChoice> rank_variants(std::span<const OfferedVariant> offered,
                                         const target::Target& target);
// Ranks for one device: noarch builds are judged for it, builds of other backends are rejected.
std::vector<VariantChoice> rank_variants(std::span<const OfferedVariant> offered,
                                         const target::Target& target, std::string_view device);

// The same for a folder on this machine. One that is no kernel: Error(malformed | not_found).
std::vector<VariantChoice> list_variants(const std::filesystem::path& kernel_dir,
                                         const target::Target& target);

std::vector<VariantChoice> list_variants(const std::filesystem::path& kernel_dir,
                                         const target::Target& target, std::string_view device);

}  // namespace twinkle::kernel
