#include "cache/shared_blobs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::uint64_t largest_list = 16u << 20;

fs::path beside(const fs::path& target, const char* suffix) {
    return target.string() + suffix;
}

// "kernels--org--name/blobs/<etag>": a line of the list that is believed.
bool is_blob_path(const std::string& line) {
    const auto parts = base::split(line, '/');
    return parts.size() == 3 && is_safe_path(line) && parts[1] == "blobs";
}

}  // namespace

std::optional<fs::path> shared_target(const Cache& cache, const fs::path& blob) {
    std::error_code error;
    const fs::path link = fs::read_symlink(blob, error);
    if (error) {
        return std::nullopt;
    }
    const fs::path target = (blob.parent_path() / link).lexically_normal();
    const std::string name = target.filename().string();
    const fs::path folder = target.parent_path();
    const bool inside = name.size() == 64 && is_etag(name) &&
                        folder.filename() == name.substr(0, 2) &&
                        folder.parent_path() == (cache.root() / "blobs").lexically_normal();
    return inside ? std::optional(target) : std::nullopt;
}

std::uint64_t sweep_shared(const Cache& cache, const fs::path& target) {
    const base::UniqueFd lock(
        ::open(beside(target, ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        return 0;
    }
    std::string list;
    try {
        list = base::read_file(beside(target, ".refs"), "list of links", largest_list);
    } catch (const Error&) {
        return 0;
    }
    const auto lines = base::split(list, '\n');
    const bool used = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return is_blob_path(line) && shared_target(cache, cache.root() / line) == target;
    });
    struct stat info{};
    if (used || ::lstat(target.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
        ::unlink(target.c_str()) != 0) {
        return 0;
    }
    ::unlink(beside(target, ".refs").c_str());
    return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace twinkle::cache
