#include "project/newer_version.h"

#include <set>

#include "cache/snapshot.h"
#include "cache/tree_file.h"
#include "kernel/metadata.h"
#include "kernel/versions.h"
#include "project/refs.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

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
    const auto versions = cached_refs(cache, repo_id).versions();
    for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
        if (pin.version && version->number <= *pin.version) {
            break;
        }
        std::string build = build_that_fits(cache, repo_id, version->commit, target, devices);
        if (!build.empty()) {
            return NewerVersion{version->number, std::move(build)};
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::project
