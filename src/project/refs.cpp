#include "project/refs.h"

#include <algorithm>

#include "base/number.h"
#include "cache/snapshot.h"
#include "project/version_specifier.h"

namespace twinkle::project {

std::optional<int> version_of(std::string_view branch) {
    if (!branch.starts_with('v') || branch.size() > 8 || (branch.size() > 2 && branch[1] == '0')) {
        return std::nullopt;
    }
    const auto number = base::parse_number<unsigned>(branch.substr(1));
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::vector<KnownVersion> KnownRefs::versions() const {
    std::vector<KnownVersion> versions;
    for (const auto& [name, commit] : branches) {
        if (const auto number = version_of(name)) {
            versions.push_back({*number, commit});
        }
    }
    std::ranges::sort(versions, {}, &KnownVersion::number);
    return versions;
}

std::vector<std::string> KnownRefs::tag_names() const {
    std::vector<std::string> names;
    for (const auto& [name, commit] : tags) {
        names.push_back(name);
    }
    return names;
}

KnownRefs cached_refs(const cache::Cache& cache, const std::string& repo_id) {
    KnownRefs known;
    for (const cache::CachedRef& ref : cache::list_refs(cache, repo_id)) {
        known.branches[ref.name] = ref.commit;
    }
    known.tags = known.branches;
    return known;
}

std::optional<std::string> ref_of(const Pin& pin, const KnownRefs& known) {
    if (!pin.specifier.empty()) {
        return newest_admitted(pin.specifier, known.tag_names());
    }
    if (!pin.empty()) {
        return pin.version ? "v" + pin.text() : pin.revision;
    }
    const auto versions = known.versions();
    return versions.empty() ? "main" : versions.back().ref();
}

}  // namespace twinkle::project
