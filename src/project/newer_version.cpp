#include "project/newer_version.h"

#include <charconv>
#include <map>
#include <set>

#include "cache/snapshot.h"
#include "cache/tree_file.h"
#include "kernel/metadata.h"
#include "kernel/versions.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

std::optional<int> version_of(const std::string& ref) {
    int number = 0;
    const auto [end, error] = std::from_chars(ref.data() + 1, ref.data() + ref.size(), number);
    const bool whole = error == std::errc() && end == ref.data() + ref.size();
    return ref.size() > 1 && ref[0] == 'v' && whole ? std::optional(number) : std::nullopt;
}

// The builds of a commit: of its list of files, else of what was fetched of it.
std::set<std::string> builds_of(const cache::Cache& cache, const std::string& repo_id,
                                const std::string& commit) {
    std::set<std::string> names;
    if (const auto tree = cache::read_tree(cache, repo_id, commit)) {
        for (const cache::TreeFile& file : *tree) {
            const auto slash = file.path.find('/', 6);
            if (file.path.starts_with("build/") && slash != std::string::npos) {
                names.insert(file.path.substr(6, slash - 6));
            }
        }
    }
    std::error_code error;
    for (fs::directory_iterator entry(cache.snapshot(repo_id, commit) / "build", error), end;
         !error && entry != end; entry.increment(error)) {
        names.insert(entry->path().filename().string());
    }
    return names;
}

std::string build_that_fits(const cache::Cache& cache, const std::string& repo_id,
                            const std::string& commit, const target::Target& target,
                            const std::vector<std::string>& devices) {
    std::vector<kernel::OfferedVariant> offered;
    for (const std::string& name : builds_of(cache, repo_id, commit)) {
        const fs::path metadata =
            cache.snapshot(repo_id, commit) / "build" / name / "metadata.json";
        offered.push_back({name, [metadata] {
                               std::error_code error;
                               return fs::exists(metadata, error)
                                          ? kernel::read_metadata(metadata).archs
                                          : std::vector<std::string>();
                           }});
    }
    for (const std::string& device : devices) {
        const auto choices = kernel::rank_variants(offered, target, device);
        if (!choices.empty() && choices.front().accepted) {
            return choices.front().name;
        }
    }
    return "";
}

}  // namespace

std::optional<NewerVersion> newer_version_that_fits(const cache::Cache& cache,
                                                    const std::string& repo_id, const Pin& pin,
                                                    const target::Target& target,
                                                    const std::vector<std::string>& devices) {
    std::map<int, std::string> versions;
    for (const cache::CachedRef& ref : cache::list_refs(cache, repo_id)) {
        const auto version = version_of(ref.name);
        if (version && (!pin.version || *version > *pin.version)) {
            versions[*version] = ref.commit;
        }
    }
    for (auto entry = versions.rbegin(); entry != versions.rend(); ++entry) {
        std::string build = build_that_fits(cache, repo_id, entry->second, target, devices);
        if (!build.empty()) {
            return NewerVersion{entry->first, std::move(build)};
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::project
