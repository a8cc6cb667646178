#pragma once
// `twinkle cache verify` and `prune`: the parts that need more than the cache itself.

#include <filesystem>
#include <vector>

#include "cache/maintain.h"
#include "operations/context.h"

namespace twinkle::operations {

struct RepairReport {
    cache::VerifyReport found;
    std::uint64_t repaired = 0;     // blobs that were fetched again
    std::vector<std::string> lost;  // that could not be: "org/name: why"
};

// Hashes everything; what is damaged is taken out and fetched again, unless `dry_run`.
RepairReport verify_cache(Context& context, bool dry_run);

// Everything that the locks of these projects do not name; all builds of what they name stay.
// Projects: folders with a manifest.
cache::Removal plan_prune(Context& context, const std::vector<std::filesystem::path>& projects);

}  // namespace twinkle::operations
