#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "cache/inventory.h"
#include "cache/maintain.h"
#include "cache/snapshot.h"
#include "cache/tree_file.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

// Temporary files have no lock; a younger one may have a living writer.
constexpr time_t in_use = 10 * 60;

using Kept = std::map<std::string, std::optional<std::set<std::string>>>;  // commit → variants

Kept kept_of(const std::string& repo_id, const std::vector<Keep>& keep) {
    Kept kept;
    for (const Keep& entry : keep) {
        if (entry.repo_id != repo_id) {
            continue;
        }
        const auto [found, added] = kept.try_emplace(entry.commit);
        if (!entry.variants) {
            found->second.reset();
        } else if (added || found->second) {
            if (added) {
                found->second.emplace();
            }
            found->second->insert(entry.variants->begin(), entry.variants->end());
        }
    }
    return kept;
}

bool stays(const Kept& kept, const std::string& commit, const std::string& path) {
    const auto found = kept.find(commit);
    if (found == kept.end()) {
        return false;
    }
    const auto variant = variant_of(path);
    return !found->second || variant.empty() || found->second->contains(std::string(variant));
}

// Collects the removals in one repository.
class Plan {
public:
    Plan(const Cache& cache, Inventory inventory, Removal& removal)
        : cache_(cache),
          folder_(cache.folder()),
          inventory_(std::move(inventory)),
          repository_(cache.repository(inventory_.repo_id)),
          removal_(removal) {}

    void drop_revisions(const Kept& kept) {
        for (auto& [commit, files] : inventory_.snapshots) {
            if (!kept.contains(commit)) {
                drop_revision(commit);
                files.clear();
            } else {
                drop_variants(kept, commit, files);
            }
        }
        for (const CachedRef& ref : list_refs(cache_, inventory_.repo_id)) {
            if (!kept.contains(ref.commit)) {
                removal_.files.push_back(cache_.ref_file(inventory_.repo_id, ref.name));
            }
        }
    }

    void drop_unused_blobs() {
        const std::set<std::string> used = shown_blobs(inventory_);
        for (const auto& [etag, blob] : inventory_.blobs) {
            if (!used.contains(etag)) {
                removal_.files.push_back(cache_.blob(inventory_.repo_id, etag));
                removal_.bytes += blob.size;
            }
        }
    }

    // `needed`: etags whose partial file is still worth keeping.
    void drop_leftovers(const std::set<std::string>& needed) {
        for (const auto& [etag, paths] : inventory_.partial) {
            if (needed.contains(etag)) {
                continue;
            }
            for (const fs::path& path : paths) {
                struct stat info{};
                const bool there = folder_.lstat(path, info) == 0;
                removal_.files.push_back(path);
                removal_.bytes += there ? static_cast<std::uint64_t>(info.st_size) : 0;
            }
        }
        for (const fs::path& path : inventory_.temporary) {
            struct stat info{};
            if (folder_.lstat(path, info) == 0 && ::time(nullptr) - info.st_mtime > in_use) {
                removal_.files.push_back(path);
            }
        }
    }

    // Nothing of it is kept: its empty folders go, too.
    void drop_folders() {
        for (const char* name : {"trees", ".no_exist"}) {
            if (folder_.is_folder(repository_ / name)) {
                removal_.folders.push_back(repository_ / name);
            }
        }
        for (const char* name : {"snapshots", "refs", "blobs"}) {
            removal_.empty_folders.push_back(repository_ / name);
        }
        removal_.empty_folders.push_back(repository_);
    }

private:
    void drop_revision(const std::string& commit) {
        removal_.folders.push_back(cache_.snapshot(inventory_.repo_id, commit));
        removal_.revisions.push_back({inventory_.repo_id, commit, {}});
        for (const SnapshotFile& file : inventory_.snapshots.at(commit)) {
            removal_.bytes += file.etag.empty() && !is_blob(file) ? file.size : 0;
        }
        if (const fs::path tree = cache_.tree_file(inventory_.repo_id, commit);
            folder_.is_file(tree)) {
            removal_.files.push_back(tree);
        }
        if (const fs::path missing = repository_ / ".no_exist" / commit;
            folder_.is_folder(missing)) {
            removal_.folders.push_back(missing);
        }
    }

    void drop_variants(const Kept& kept, const std::string& commit,
                       std::vector<SnapshotFile>& files) {
        std::set<std::string> dropped;
        std::erase_if(files, [&](const SnapshotFile& file) {
            if (stays(kept, commit, file.path)) {
                return false;
            }
            dropped.emplace(variant_of(file.path));
            removal_.bytes += file.etag.empty() && !is_blob(file) ? file.size : 0;
            return true;
        });
        for (const std::string& variant : dropped) {
            removal_.folders.push_back(cache_.snapshot(inventory_.repo_id, commit) / "build" /
                                       variant);
        }
        if (!dropped.empty()) {
            removal_.revisions.push_back(
                {inventory_.repo_id, commit, {dropped.begin(), dropped.end()}});
        }
    }

    bool is_blob(const SnapshotFile& file) const {
        return std::any_of(inventory_.blobs.begin(), inventory_.blobs.end(),
                           [&](const auto& blob) { return blob.second.identity == file.identity; });
    }

    const Cache& cache_;
    const base::Folder& folder_;
    Inventory inventory_;
    const fs::path repository_;
    Removal& removal_;
};

std::set<std::string> etags_of(const Cache& cache, const std::string& repo_id, const Kept& kept) {
    std::set<std::string> etags;
    for (const auto& [commit, variants] : kept) {
        for (const TreeFile& file :
             read_tree(cache, repo_id, commit).value_or(std::vector<TreeFile>())) {
            if (stays(kept, commit, file.path)) {
                etags.insert(file.etag());
            }
        }
    }
    return etags;
}

}  // namespace

Removal plan_prune(const Cache& cache, const std::vector<Keep>& keep) {
    Removal removal;
    for (const std::string& repo_id : cached_repositories(cache)) {
        const Kept kept = kept_of(repo_id, keep);
        Plan plan(cache, take_inventory(cache, repo_id), removal);
        plan.drop_revisions(kept);
        plan.drop_unused_blobs();
        plan.drop_leftovers(etags_of(cache, repo_id, kept));
        if (kept.empty()) {
            plan.drop_folders();
        }
    }
    return removal;
}

Removal plan_clean(const Cache& cache) {
    Removal removal;
    for (const std::string& repo_id : cached_repositories(cache)) {
        Plan plan(cache, take_inventory(cache, repo_id), removal);
        plan.drop_unused_blobs();
        plan.drop_leftovers({});
    }
    return removal;
}

}  // namespace twinkle::cache
