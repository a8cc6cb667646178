#pragma once
// Resolving as resolve and kernelize do it: for the project that the user named or stands in, with
// everything worth saying said.

#include <optional>
#include <string>

#include "cli/console.h"
#include "project/resolver.h"

namespace twinkle::cli {

project::Resolution resolve_now(Console& console, const std::optional<std::string>& target,
                                bool strict);

}  // namespace twinkle::cli
