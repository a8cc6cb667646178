#include "cache/inventory.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/text.h"
#include "cache/shared_blobs.h"
#include "cache/snapshot.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

SnapshotFile describe(const Cache& cache, const std::string& repo_id, const fs::path& folder,
                      const base::Folder::Entry& entry) {
    SnapshotFile file;
    file.path = entry.path.lexically_relative(folder).generic_string();
    struct stat info{};
    bool there = false;
    if (!S_ISLNK(entry.kind)) {
        there = cache.folder().lstat(entry.path, info) == 0;
    } else if (const auto etag = linked_etag(cache, repo_id, entry.path)) {
        file.etag = *etag;
        there = stat_blob(cache, cache.blob(repo_id, *etag), info);
    } else {
        file.flaw = "it links to " +
                    base::printable(cache.folder().read_link(entry.path).value_or("?")) +
                    ", not into the blobs of its repository";
        return file;
    }
    if (there) {
        file.size = static_cast<std::uint64_t>(info.st_size);
        file.identity = {info.st_dev, info.st_ino};
    } else {
        file.flaw = "the link leads nowhere";
    }
    return file;
}

std::vector<SnapshotFile> snapshot_files(const Cache& cache, const std::string& repo_id,
                                         const fs::path& folder) {
    std::vector<SnapshotFile> files;
    cache.folder().walk(folder, [&](const base::Folder::Entry& entry) {
        if (S_ISLNK(entry.kind) || S_ISREG(entry.kind)) {
            files.push_back(describe(cache, repo_id, folder, entry));
        }
    });
    std::sort(files.begin(), files.end(),
              [](const SnapshotFile& a, const SnapshotFile& b) { return a.path < b.path; });
    return files;
}

BlobFile describe_blob(const Cache& cache, const fs::path& path) {
    struct stat info{};
    if (!stat_blob(cache, path, info)) {
        return {0, {}, "it is a link that leads to no blob"};
    }
    return {static_cast<std::uint64_t>(info.st_size), {info.st_dev, info.st_ino}, ""};
}

bool is_temporary(const std::string& name) {
    return name.ends_with(".tmp") || name.starts_with("tmp_") || name.ends_with(".incomplete");
}

}  // namespace

Inventory take_inventory(const Cache& cache, const std::string& repo_id) {
    Inventory inventory;
    inventory.repo_id = repo_id;
    const fs::path repository = cache.repository(repo_id);
    for (const auto& entry : cache.folder().entries(repository / "snapshots")) {
        const std::string commit = entry.path.filename().string();
        if (is_commit(commit) && S_ISDIR(entry.kind)) {
            inventory.snapshots[commit] = snapshot_files(cache, repo_id, entry.path);
        }
    }
    inventory.partial = list_partial_files(cache, repo_id);
    for (const auto& entry : cache.folder().entries(cache.blobs(repo_id))) {
        const std::string name = entry.path.filename().string();
        if (is_etag(name)) {
            inventory.blobs[name] = describe_blob(cache, entry.path);
        } else if (is_temporary(name) &&
                   !inventory.partial.contains(name.substr(0, name.find('.')))) {
            inventory.temporary.push_back(entry.path);
        }
    }
    for (const char* folder : {"refs", "trees"}) {
        for (const auto& entry : cache.folder().entries(repository / folder)) {
            if (entry.path.filename().string().ends_with(".tmp")) {
                inventory.temporary.push_back(entry.path);
            }
        }
    }
    std::sort(inventory.temporary.begin(), inventory.temporary.end());
    return inventory;
}

std::set<std::string> shown_blobs(const Inventory& inventory) {
    std::set<std::string> etags;
    std::set<std::pair<dev_t, ino_t>> files;
    for (const auto& [commit, shown] : inventory.snapshots) {
        for (const SnapshotFile& file : shown) {
            if (!file.etag.empty()) {
                etags.insert(file.etag);
            } else if (file.flaw.empty()) {
                files.insert(file.identity);
            }
        }
    }
    for (const auto& [etag, blob] : inventory.blobs) {
        if (blob.flaw.empty() && files.contains(blob.identity)) {
            etags.insert(etag);
        }
    }
    return etags;
}

std::vector<std::string> cached_repositories(const Cache& cache) {
    std::vector<std::string> repositories;
    for (const auto& entry : cache.folder().entries(cache.root())) {
        auto repo_id = repository_of(entry.path.filename().string());
        if (repo_id && S_ISDIR(entry.kind)) {
            repositories.push_back(std::move(*repo_id));
        }
    }
    std::sort(repositories.begin(), repositories.end());
    return repositories;
}

std::vector<fs::path> linked_folders(const Cache& cache) {
    std::vector<fs::path> links;
    const auto look = [&](const fs::path& folder, const auto& wanted) {
        for (const auto& entry : cache.folder().entries(folder)) {
            if (S_ISLNK(entry.kind) && wanted(entry.path.filename().string())) {
                links.push_back(entry.path);
            }
        }
    };
    const auto is_kernel = [](const std::string& name) { return repository_of(name).has_value(); };
    look(cache.root(), [&](const std::string& name) {
        return name == ".locks" || name == "blobs" || is_kernel(name);
    });
    look(cache.root() / ".locks", is_kernel);
    for (const std::string& repo_id : cached_repositories(cache)) {
        const fs::path repository = cache.repository(repo_id);
        look(repository, [](const std::string&) { return true; });
        look(repository / "snapshots", is_commit);
    }
    std::sort(links.begin(), links.end());
    return links;
}

std::string_view variant_of(std::string_view path) {
    constexpr std::string_view builds = "build/";
    if (!path.starts_with(builds)) {
        return {};
    }
    path.remove_prefix(builds.size());
    const auto slash = path.find('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace twinkle::cache
