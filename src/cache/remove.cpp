#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "cache/blob_lock.h"
#include "cache/cache_error.h"
#include "cache/inventory.h"
#include "cache/maintain.h"
#include "cache/shared_blobs.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

// The repository and etag of a path among the blobs.
struct BlobPath {
    std::string repo_id;
    std::string etag;
    bool whole = false;
};

std::optional<BlobPath> blob_path(const Cache& cache, const fs::path& path) {
    const fs::path folder = path.parent_path();
    const auto repo_id = repository_of(folder.parent_path().filename().string());
    const std::string name = path.filename().string();
    const std::string etag = name.substr(0, name.find('.'));
    if (folder.filename() != "blobs" || !repo_id || !is_etag(etag) ||
        cache.blobs(*repo_id) != folder) {
        return std::nullopt;
    }
    return BlobPath{*repo_id, etag, name == etag};
}

void unlink_if_there(const Cache& cache, const fs::path& path) {
    if (cache.folder().unlink(path) != 0 && errno != ENOENT) {
        throw_cache_error(cache, path, errno);
    }
}

std::uint64_t remove_blob(const Cache& cache, const fs::path& path, const BlobPath& blob) {
    const auto lock = BlobLock::try_lock(cache, blob.repo_id, blob.etag);
    struct stat info{};
    if (!lock || cache.folder().lstat(path, info) != 0) {
        return 0;
    }
    const auto target = shared_target(cache, path);
    unlink_if_there(cache, path);
    if (target) {
        return sweep_shared(cache, *target);
    }
    return info.st_nlink > 1 ? 0 : static_cast<std::uint64_t>(info.st_size);
}

std::uint64_t remove_folder(const Cache& cache, const fs::path& folder) {
    std::uint64_t bytes = 0;
    cache.folder().walk(folder, [&](const base::Folder::Entry& entry) {
        struct stat info{};
        if (cache.folder().lstat(entry.path, info) == 0 && S_ISREG(info.st_mode) &&
            info.st_nlink == 1) {
            bytes += static_cast<std::uint64_t>(info.st_size);
        }
    });
    if (cache.folder().remove_all(folder) != 0) {
        throw_cache_error(cache, folder, errno);
    }
    return bytes;
}

}  // namespace

std::uint64_t remove(const Cache& cache, const Removal& removal) {
    std::uint64_t bytes = 0;
    std::vector<std::pair<fs::path, BlobPath>> blobs;
    for (const fs::path& folder : removal.folders) {
        bytes += remove_folder(cache, folder);
    }
    for (const fs::path& file : removal.files) {
        if (auto blob = blob_path(cache, file)) {
            blobs.emplace_back(file, std::move(*blob));
        } else {
            unlink_if_there(cache, file);
        }
    }
    std::map<std::string, std::set<std::string>> shown;
    for (const auto& [file, blob] : blobs) {
        const auto [found, added] = shown.try_emplace(blob.repo_id);
        if (added) {
            // Looks again: a fetch may have linked to a blob since the plan was made.
            found->second = shown_blobs(take_inventory(cache, blob.repo_id));
        }
        if (!blob.whole || !found->second.contains(blob.etag)) {
            bytes += remove_blob(cache, file, blob);
        }
    }
    for (const fs::path& folder : removal.empty_folders) {
        cache.folder().rmdir(folder);  // refused where something is left or has come
    }
    return bytes;
}

}  // namespace twinkle::cache
