#pragma once
// Resolving as resolve and kernelize do it: for the project that the user named or stands in, with
// everything worth saying said.

#include <optional>
#include <string>

#include "cli/console.h"
#include "project/resolver.h"
#include "target/target.h"

namespace twinkle::cli {

struct ResolveChoices {
    std::optional<std::string> target;
    std::optional<std::string> lockfile;
    bool locked = false;
    bool strict = false;
};

project::Resolution resolve_now(Console& console, const ResolveChoices& choices);

// What --target says beside a mapping that is resolved already: names are the project's.
target::Target named_target(const Console& console, const std::string& text);

}  // namespace twinkle::cli
