#include "cache/inventory.h"

#include <sys/stat.h>

#include <algorithm>

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

// A link in the place of a folder leads to where nothing of the cache is.
bool is_own_folder(const fs::path& folder) {
    std::error_code error;
    return fs::is_directory(fs::symlink_status(folder, error));
}

// Calls `each` with every entry; a folder that is not there or cannot be read has none.
template <typename Each>
void for_entries(const fs::path& folder, Each&& each) {
    std::error_code error;
    fs::directory_iterator entry(folder, error), end;
    while (!error && entry != end) {
        each(entry->path());
        entry.increment(error);
    }
}

template <typename Each>
void for_own_entries(const fs::path& folder, Each&& each) {
    if (is_own_folder(folder)) {
        for_entries(folder, each);
    }
}

// The blob of the repository that a link in a snapshot leads to.
std::string linked_etag(const fs::path& link, const fs::path& blobs) {
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    const fs::path full = (link.parent_path() / target).lexically_normal();
    const std::string name = full.filename().string();
    return !error && full.parent_path() == blobs.lexically_normal() && is_etag(name) ? name : "";
}

SnapshotFile describe(const fs::path& file, const fs::path& folder, const fs::path& blobs,
                      bool link) {
    SnapshotFile described;
    described.path = file.lexically_relative(folder).generic_string();
    if (link) {
        described.etag = linked_etag(file, blobs);
    }
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0) {
        described.size = static_cast<std::uint64_t>(info.st_size);
        described.identity = {info.st_dev, info.st_ino};
    } else {
        described.dangling = true;
    }
    return described;
}

std::vector<SnapshotFile> snapshot_files(const fs::path& folder, const fs::path& blobs) {
    std::vector<SnapshotFile> files;
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, error), end;
    while (!error && entry != end) {
        const auto status = entry->symlink_status(error);
        if (fs::is_symlink(status) || fs::is_regular_file(status)) {
            files.push_back(describe(entry->path(), folder, blobs, fs::is_symlink(status)));
        }
        entry.increment(error);
    }
    std::sort(files.begin(), files.end(),
              [](const SnapshotFile& a, const SnapshotFile& b) { return a.path < b.path; });
    return files;
}

bool is_temporary(const std::string& name) {
    return name.ends_with(".tmp") || name.starts_with("tmp_") || name.ends_with(".incomplete");
}

}  // namespace

Inventory take_inventory(const Cache& cache, const std::string& repo_id) {
    Inventory inventory;
    inventory.repo_id = repo_id;
    const fs::path repository = cache.repository(repo_id);
    const fs::path blobs = cache.blobs(repo_id);
    for_own_entries(repository / "snapshots", [&](const fs::path& folder) {
        const std::string commit = folder.filename().string();
        if (is_commit(commit) && is_own_folder(folder)) {
            inventory.snapshots[commit] = snapshot_files(folder, blobs);
        }
    });
    inventory.partial = list_partial_files(cache, repo_id);
    for_own_entries(blobs, [&](const fs::path& file) {
        const std::string name = file.filename().string();
        struct stat info{};
        if (is_etag(name)) {
            const bool there = ::stat(file.c_str(), &info) == 0;
            inventory.blobs[name] = {there ? static_cast<std::uint64_t>(info.st_size) : 0,
                                     {info.st_dev, info.st_ino},
                                     !there};
        } else if (is_temporary(name) &&
                   !inventory.partial.contains(name.substr(0, name.find('.')))) {
            inventory.temporary.push_back(file);
        }
    });
    for (const char* folder : {"refs", "trees"}) {
        for_own_entries(repository / folder, [&](const fs::path& file) {
            if (file.filename().string().ends_with(".tmp")) {
                inventory.temporary.push_back(file);
            }
        });
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
            } else if (!file.dangling) {
                files.insert(file.identity);
            }
        }
    }
    for (const auto& [etag, blob] : inventory.blobs) {
        if (!blob.dangling && files.contains(blob.identity)) {
            etags.insert(etag);
        }
    }
    return etags;
}

std::vector<std::string> cached_repositories(const Cache& cache) {
    std::vector<std::string> repositories;
    for_entries(cache.root(), [&](const fs::path& folder) {
        std::error_code error;
        auto repo_id = repository_of(folder.filename().string());
        if (repo_id && fs::is_directory(folder, error)) {
            repositories.push_back(std::move(*repo_id));
        }
    });
    std::sort(repositories.begin(), repositories.end());
    return repositories;
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
