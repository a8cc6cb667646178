#pragma once
// A build, a repository of builds, or a source project, against the rules of a Hub kernel.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernel/check_build.h"
#include "kernel/finding.h"

namespace twinkle::operations {

struct CheckReport {
    std::filesystem::path root;          // file names in findings are relative to it
    std::vector<std::string> builds;     // the variants that were checked
    bool project = false;                // there is a build.toml
    bool for_this_machine_only = false;  // at least one build is for no other machine
    kernel::Findings findings;           // errors first

    bool violated() const;  // has errors
};

// Throws Error(not_found | malformed) where the path is no kernel at all.
CheckReport check_kernel(const std::filesystem::path& path,
                         std::optional<kernel::Audience> audience);

// The newest versions of symbols that this machine's C and C++ libraries have.
kernel::SymbolLimits limits_here();

}  // namespace twinkle::operations
