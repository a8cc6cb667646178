#pragma once
// The versions of a kernel on the Hub, and for each of them its builds in order of preference.

#include <optional>
#include <string>
#include <vector>

#include "kernel/versions.h"
#include "operations/context.h"
#include "project/kernel_spec.h"
#include "target/target.h"

namespace twinkle::operations {

struct VersionListing {
    std::string repo_id;
    std::optional<int> version;
    std::string ref;  // "v1"; empty: a commit
    std::string commit;
    std::vector<kernel::VariantChoice> variants;
};

// Newest first. Without a pin every version, or "main" where there is none; with one, that state.
// Offline: what the cache knows. A folder of LOCAL_KERNELS is one version without a number.
std::vector<VersionListing> list_versions(Context& context, const project::KernelSpec& spec,
                                          const target::Target& target);

// Text for the hint where nothing fits, not even on the target's CPU: "version 3 has a build for
// it", or nothing.
std::string fitting_version_hint(const std::vector<VersionListing>& listings);

}  // namespace twinkle::operations
