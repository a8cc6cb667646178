#pragma once
// A kernel by itself as a mapping: each of its layers and functions for the classes and functions
// of models that they are bound to, by the manifest, by a preset or by their name.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "twinkle/mapping.h"

namespace twinkle::operations {

// `kernel`: a build, a repository (its build for this machine, else its first) or a package.
// `project`: as --project. A manifest that cannot be read is warned of. Throws Error(not_found)
// where there is no build.
Mapping kernel_mapping(const std::filesystem::path& kernel,
                       const std::optional<std::filesystem::path>& project,
                       const std::function<void(const std::string&)>& warn);

}  // namespace twinkle::operations
