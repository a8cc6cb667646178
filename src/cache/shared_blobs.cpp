#include "cache/shared_blobs.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/hex.h"
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

// Accepts a line of the list only in the form "kernels--org--name/blobs/<etag>".
bool is_blob_path(const std::string& line) {
    const auto parts = base::split(line, '/');
    return parts.size() == 3 && is_safe_path(line) && parts[1] == "blobs";
}

// Accepts any name: the file is only read.
std::optional<fs::path> shared_file(const Cache& cache, const fs::path& blob) {
    const auto target = cache.link_target(blob);
    const auto parts =
        target ? base::split(target->generic_string(), '/') : std::vector<std::string>();
    const bool inside =
        parts.size() == 3 && parts[0] == "blobs" && base::is_hex(parts[1], 2) && !parts[2].empty();
    return inside ? std::optional(cache.root() / *target) : std::nullopt;
}

}  // namespace

std::optional<fs::path> shared_target(const Cache& cache, const fs::path& blob) {
    const auto target = shared_file(cache, blob);
    const std::string name = target ? target->filename().string() : "";
    const bool ours =
        name.size() == 64 && is_etag(name) && target->parent_path().filename() == name.substr(0, 2);
    return ours ? target : std::nullopt;
}

fs::path bytes_of_blob(const Cache& cache, const fs::path& blob) {
    return shared_file(cache, blob).value_or(blob);
}

bool stat_blob(const Cache& cache, const fs::path& blob, struct stat& info) {
    if (cache.folder().lstat(blob, info) != 0) {
        return false;
    }
    if (S_ISLNK(info.st_mode)) {
        const auto target = shared_file(cache, blob);
        return target && cache.folder().lstat(*target, info) == 0 && S_ISREG(info.st_mode);
    }
    return S_ISREG(info.st_mode);
}

std::uint64_t sweep_shared(const Cache& cache, const fs::path& target) {
    const base::Folder& folder = cache.folder();
    const base::UniqueFd lock = folder.open(beside(target, ".lock"), O_RDWR | O_CREAT, 0666);
    if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
        return 0;
    }
    std::string list;
    try {
        const fs::path file = beside(target, ".refs");
        list = base::read_file(folder.open(file, O_RDONLY | O_NONBLOCK), file, "list of links",
                               largest_list);
    } catch (const Error&) {
        return 0;
    }
    const auto lines = base::split(list, '\n');
    const bool used = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return is_blob_path(line) && shared_target(cache, cache.root() / line) == target;
    });
    struct stat info{};
    if (used || folder.lstat(target, info) != 0 || !S_ISREG(info.st_mode) ||
        folder.unlink(target) != 0) {
        return 0;
    }
    folder.unlink(beside(target, ".refs"));
    return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace twinkle::cache
