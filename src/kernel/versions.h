#pragma once
// The builds of a kernel in order of preference, with the reason for each: what `twinkle versions`
// prints and what the resolver decides by.

#include <filesystem>
#include <optional>
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
    bool broken = false;     // its name fits, but its metadata cannot be read
    std::string reason;      // one line, for accepted ones too
};

// Accepted before rejected, preferred first; the same folder and target give the same order. A
// folder that is no kernel: Error(malformed | not_found).
std::vector<VariantChoice> list_variants(const std::filesystem::path& kernel_dir,
                                         const target::Target& target);

// The same for one device: noarch builds are judged for it, builds of other backends are rejected.
std::vector<VariantChoice> list_variants(const std::filesystem::path& kernel_dir,
                                         const target::Target& target, std::string_view device);

}  // namespace twinkle::kernel
