#pragma once
// The machines that an operation works for.

#include <span>
#include <string>
#include <vector>

#include "operations/context.h"
#include "project/lock.h"
#include "target/target.h"

namespace twinkle::operations {

// What --target says, several times over: each is "here", a name from the manifest, a file or
// key=value,…. None at all: this machine.
std::vector<target::Target> choose_targets(const Context& context, const Project* project,
                                           std::span<const std::string> texts);

// The builds of a locked kernel that the targets use: the preferred one of each device, by name.
// Throws Error(not_found) with every reason, and a version that would do, where one of the targets
// has none.
std::vector<std::string> builds_for(Context& context, const project::LockedKernel& kernel,
                                    std::span<const target::Target> targets);

}  // namespace twinkle::operations
