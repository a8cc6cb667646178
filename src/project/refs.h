#pragma once
// The branches and tags of a repository, and which of them a pin means.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/layout.h"
#include "project/pin.h"

namespace twinkle::project {

// The 3 of a branch v3; none: the branch is no version.
std::optional<int> version_of(std::string_view branch);

// A branch v0, v1, ….
struct KnownVersion {
    int number = 0;
    std::string commit;

    std::string ref() const { return "v" + std::to_string(number); }
};

struct KnownRefs {
    std::map<std::string, std::string> branches, tags;  // name → commit

    std::vector<KnownVersion> versions() const;  // ascending
    std::vector<std::string> tag_names() const;
};

// What the cache remembers. It does not tell branches from tags: every name counts as both.
KnownRefs cached_refs(const cache::Cache& cache, const std::string& repo_id);

// The branch, tag or commit that a pin means: of an empty one the newest version, "main" where
// there is none. None: no tag fits its specifier.
std::optional<std::string> ref_of(const Pin& pin, const KnownRefs& known);

}  // namespace twinkle::project
