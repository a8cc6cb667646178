#pragma once
// Resolving, as resolve and kernelize do it: for the project that the user names or is in, with all
// warnings printed.

#include <filesystem>
#include <optional>
#include <string>

#include "cli/console.h"
#include "project/resolver.h"
#include "target/target.h"

namespace twinkle::cli {

struct ResolveChoices {
    std::optional<std::string> target;
    std::optional<std::string> lockfile;
    project::LockDemand lock = project::LockDemand::none;
    bool strict = false;
};

project::Resolution resolve_now(Console& console, const ResolveChoices& choices);

// The file that --target names; none: it is a target's name in the project, or key=value.
std::optional<std::filesystem::path> target_file(const Console& console, const std::string& text);

// The --target given with a resolved mapping: names are the project's.
target::Target named_target(const Console& console, const std::string& text);

}  // namespace twinkle::cli
