#pragma once
// Resolving as resolve and kernelize do it: for the project that the user named or stands in, with
// everything worth saying said.

#include <optional>
#include <string>

#include "cli/console.h"
#include "project/resolver.h"

namespace twinkle::cli {

struct ResolveChoices {
    std::optional<std::string> target;
    std::optional<std::string> lockfile;
    bool locked = false;
    bool strict = false;
};

project::Resolution resolve_now(Console& console, const ResolveChoices& choices);

}  // namespace twinkle::cli
