#include "cache/snapshot.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::uint64_t largest_ref = 4096;

std::optional<std::string> read_commit(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
        return std::nullopt;
    }
    try {
        std::string text = base::read_file(file, "ref in the cache", largest_ref);
        text.erase(text.find_last_not_of(" \n\r\t") + 1);
        return is_commit(text) ? std::optional(std::move(text)) : std::nullopt;
    } catch (const Error&) {
        return std::nullopt;
    }
}

bool leads_into(const fs::path& link, const fs::path& folder) {
    std::error_code error;
    const fs::path target = fs::read_symlink(link, error);
    return !error && (link.parent_path() / target).lexically_normal().parent_path() ==
                         folder.lexically_normal();
}

}  // namespace

std::optional<std::string> find_commit(const Cache& cache, std::string_view repo_id,
                                       std::string_view ref_or_commit) {
    if (!is_safe_path(ref_or_commit)) {
        return std::nullopt;
    }
    if (auto commit = read_commit(cache.ref_file(repo_id, ref_or_commit))) {
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
    fs::path folder = cache.snapshot(repo_id, *commit);
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        return std::nullopt;
    }
    return Snapshot{std::move(*commit), std::move(folder)};
}

std::vector<CachedRef> list_refs(const Cache& cache, std::string_view repo_id) {
    const fs::path folder = cache.repository(repo_id) / "refs";
    std::vector<CachedRef> refs;
    std::error_code error;
    fs::recursive_directory_iterator entry(folder, error), end;
    while (!error && entry != end) {
        if (auto commit = read_commit(entry->path())) {
            refs.push_back(
                {entry->path().lexically_relative(folder).generic_string(), std::move(*commit)});
        }
        entry.increment(error);
    }
    std::sort(refs.begin(), refs.end(),
              [](const CachedRef& a, const CachedRef& b) { return a.name < b.name; });
    return refs;
}

bool has_file(const Cache& cache, std::string_view repo_id, std::string_view commit,
              std::string_view path, std::optional<std::uint64_t> size) {
    const fs::path file = cache.file(repo_id, commit, path);
    struct stat info{};
    if (::lstat(file.c_str(), &info) != 0) {
        return false;
    }
    // A link that leads anywhere else than into the blobs is not one of ours.
    if (S_ISLNK(info.st_mode) &&
        (!leads_into(file, cache.blobs(repo_id)) || ::stat(file.c_str(), &info) != 0)) {
        return false;
    }
    return S_ISREG(info.st_mode) && (!size || static_cast<std::uint64_t>(info.st_size) == *size);
}

bool is_known_missing(const Cache& cache, std::string_view repo_id, std::string_view commit,
                      std::string_view path) {
    std::error_code error;
    return fs::is_regular_file(cache.missing_file(repo_id, commit, path), error);
}

}  // namespace twinkle::cache
