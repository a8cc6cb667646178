#include "cache/snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "cache/shared_blobs.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::uint64_t largest_ref = 4096;

std::optional<std::string> read_commit(const Cache& cache, const fs::path& path) {
    base::UniqueFd file = cache.folder().open(path, O_RDONLY | O_NONBLOCK);
    if (!file) {
        return std::nullopt;
    }
    try {
        std::string text = base::read_file(std::move(file), path, "ref in the cache", largest_ref);
        text.erase(text.find_last_not_of(" \n\r\t") + 1);
        return is_commit(text) ? std::optional(std::move(text)) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

std::optional<std::string> find_commit(const Cache& cache, std::string_view repo_id,
                                       std::string_view ref_or_commit) {
    if (!is_safe_path(ref_or_commit)) {
        return std::nullopt;
    }
    if (auto commit = read_commit(cache, cache.ref_file(repo_id, ref_or_commit))) {
        return commit;
    }
    return is_commit(ref_or_commit) ? std::optional<std::string>(ref_or_commit) : std::nullopt;
}

std::optional<Snapshot> find_snapshot(const Cache& cache, std::string_view repo_id,
                                      std::string_view ref_or_commit) {
    auto commit = find_commit(cache, repo_id, ref_or_commit);
    if (!commit) {
        return std::nullopt;
    }
    if (!has_snapshot(cache, repo_id, *commit)) {
        return std::nullopt;
    }
    fs::path folder = cache.snapshot(repo_id, *commit);
    return Snapshot{std::move(*commit), std::move(folder)};
}

bool has_snapshot(const Cache& cache, std::string_view repo_id, std::string_view commit) {
    return cache.folder().is_folder(cache.snapshot(repo_id, commit));
}

std::optional<std::string> linked_etag(const Cache& cache, std::string_view repo_id,
                                       const fs::path& link) {
    const auto target = cache.link_target(link);
    if (!target || target->parent_path() != fs::path(repository_folder(repo_id)) / "blobs") {
        return std::nullopt;
    }
    std::string name = target->filename().string();
    return is_etag(name) ? std::optional(std::move(name)) : std::nullopt;
}

std::vector<CachedRef> list_refs(const Cache& cache, std::string_view repo_id) {
    const fs::path folder = cache.repository(repo_id) / "refs";
    std::vector<CachedRef> refs;
    cache.folder().walk(folder, [&](const base::Folder::Entry& entry) {
        if (auto commit = read_commit(cache, entry.path)) {
            refs.push_back(
                {entry.path.lexically_relative(folder).generic_string(), std::move(*commit)});
        }
    });
    std::sort(refs.begin(), refs.end(),
              [](const CachedRef& a, const CachedRef& b) { return a.name < b.name; });
    return refs;
}

bool has_file(const Cache& cache, std::string_view repo_id, std::string_view commit,
              std::string_view path, std::optional<std::uint64_t> size) {
    const fs::path file = cache.file(repo_id, commit, path);
    struct stat info{};
    if (cache.folder().lstat(file, info) != 0) {
        return false;
    }
    if (S_ISLNK(info.st_mode)) {
        const auto etag = linked_etag(cache, repo_id, file);
        if (!etag || !stat_blob(cache, cache.blob(repo_id, *etag), info)) {
            return false;
        }
    }
    return S_ISREG(info.st_mode) && (!size || static_cast<std::uint64_t>(info.st_size) == *size);
}

}  // namespace twinkle::cache
