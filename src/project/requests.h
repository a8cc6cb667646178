#pragma once
// What a manifest wants to have locked: [kernels], and what only [layers], [functions] or
// [patterns] name.

#include <string>
#include <vector>

#include "project/manifest.h"

namespace twinkle::project {

// One state of one repository. A repository may be asked for in several versions, side by side.
struct HubRequest {
    std::string repo_id;
    Pin pin;                         // never empty: the revision "main" where nobody says more
    bool unpinned = false;           // … which is worth a warning
    std::vector<std::string> where;  // every place that asks for it, file:line:column

    std::string text() const { return repo_id + "@" + pin.text(); }
};

// Sorted by repository and pin, each pair once. Throws Error(malformed) where a layer or function
// does not say which of several versions in [kernels] it means.
std::vector<HubRequest> hub_requests(const Manifest& manifest);

// Kernels in folders, sorted by key. Those that [kernels] does not name are called by their path as
// seen from the manifest.
std::vector<KernelRequest> local_requests(const Manifest& manifest);

// One line for each request that nobody gave a version.
std::vector<std::string> unpinned_warnings(const std::vector<HubRequest>& requests);

// The pin that a layer or function means: its own, else the one that [kernels] gives to its
// repository, else empty. Throws Error(malformed) where [kernels] has several.
Pin pin_of(const Manifest& manifest, const LayerBinding& layer);
Pin pin_of(const Manifest& manifest, const FunctionBinding& function);

// The folder that repo_path and package_name mean: a package in a repository of several, or the
// repository of a single one. And its name where [kernels] has none for it.
std::filesystem::path local_folder(const std::filesystem::path& repo_path,
                                   const std::string& package_name);
std::string local_name(const Manifest& manifest, const std::filesystem::path& folder);

}  // namespace twinkle::project
