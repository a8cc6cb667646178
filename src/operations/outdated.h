#pragma once
// `twinkle outdated`: what has moved on since it was locked, and whether the targets could follow.

#include <optional>
#include <string>
#include <vector>

#include "operations/context.h"

namespace twinkle::operations {

struct OutdatedKernel {
    std::string kernel;  // "org/name@1"
    std::string repo_id;
    std::string ref;                    // that it was locked at
    std::string locked_commit;          // empty: not locked
    std::string current_commit;         // of the same request now
    std::optional<int> newest_version;  // larger than the locked one
    std::string newest_variant;  // the build of the newest version that the first target uses
    bool newest_fits = false;    // every target has a build there
    std::string why_not;         // where it does not

    bool moved() const { return locked_commit != current_commit; }
};

// Returns only what is out of date. Throws Error(not_found) where the project has no lock.
std::vector<OutdatedKernel> outdated(Context& context, const std::vector<std::string>& targets);

}  // namespace twinkle::operations
