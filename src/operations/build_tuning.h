#pragma once
// tuning.toml of a build.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernel/finding.h"
#include "kernel/layers.h"
#include "tuning/declaration.h"

namespace twinkle::operations {

// None: the build has none, or a problem says why it cannot be read.
std::optional<tuning::Declaration> read_build_tuning(const std::filesystem::path& build,
                                                     std::vector<kernel::Problem>& problems);

// The file in its form, and about operators that the build has. `shown` is for messages:
// "build/<variant>/".
void check_build_tuning(const std::filesystem::path& build,
                        const std::vector<std::string>& operators, const std::string& shown,
                        kernel::Findings& findings);

}  // namespace twinkle::operations
