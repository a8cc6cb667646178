#pragma once
// When no build fits: is there a newer version that has one? From what the cache knows.

#include <optional>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "project/pin.h"
#include "target/target.h"

namespace twinkle::project {

struct NewerVersion {
    int version = 0;
    std::string build;
};

// The newest one; none: there is none, or the cache does not know of it.
std::optional<NewerVersion> newer_version_that_fits(const cache::Cache& cache,
                                                    const std::string& repo_id, const Pin& pin,
                                                    const target::Target& target,
                                                    const std::vector<std::string>& devices);

}  // namespace twinkle::project
