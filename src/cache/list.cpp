#include <algorithm>
#include <set>

#include "cache/inventory.h"
#include "cache/maintain.h"
#include "cache/snapshot.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

CachedRevision describe(const std::string& commit, const std::vector<SnapshotFile>& files,
                        const std::vector<CachedRef>& refs) {
    CachedRevision revision;
    revision.commit = commit;
    for (const CachedRef& ref : refs) {
        if (ref.commit == commit) {
            revision.refs.push_back(ref.name);
        }
    }
    std::set<std::string> variants;
    for (const SnapshotFile& file : files) {
        revision.size += file.size;
        if (const auto variant = variant_of(file.path); !variant.empty()) {
            variants.emplace(variant);
        }
    }
    revision.variants.assign(variants.begin(), variants.end());
    revision.files = files.size();
    return revision;
}

}  // namespace

std::vector<CachedRepository> list(const Cache& cache) {
    std::vector<CachedRepository> repositories;
    for (const std::string& repo_id : cached_repositories(cache)) {
        const Inventory inventory = take_inventory(cache, repo_id);
        const auto refs = list_refs(cache, repo_id);
        CachedRepository repository;
        repository.repo_id = repo_id;
        repository.folder = cache.repository(repo_id);
        std::set<std::pair<dev_t, ino_t>> counted;
        for (const auto& [etag, blob] : inventory.blobs) {
            repository.size += counted.insert(blob.identity).second ? blob.size : 0;
        }
        for (const auto& [commit, files] : inventory.snapshots) {
            repository.revisions.push_back(describe(commit, files, refs));
            for (const SnapshotFile& file : files) {
                repository.size += counted.insert(file.identity).second ? file.size : 0;
            }
        }
        for (const auto& [etag, paths] : inventory.partial) {
            for (const fs::path& path : paths) {
                struct stat info{};
                const bool there = cache.folder().lstat(path, info) == 0;
                repository.partial_files += 1;
                repository.partial_size += there ? static_cast<std::uint64_t>(info.st_size) : 0;
            }
        }
        repositories.push_back(std::move(repository));
    }
    return repositories;
}

}  // namespace twinkle::cache
