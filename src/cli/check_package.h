#pragma once
// check for a package that AOTInductor compiled: whether it runs on a machine.

#include <optional>
#include <string>

#include "cli/console.h"

namespace twinkle::cli {

// Prints the reasons against it, and returns the exit status. Throws Error(verification) if there
// are any, Error(malformed) for a file that is no such package.
int check_package(const std::string& path, const std::optional<std::string>& target,
                  Console& console);

}  // namespace twinkle::cli
