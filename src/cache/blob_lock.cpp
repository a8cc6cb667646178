#include "cache/blob_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "cache/cache_error.h"
#include "cache/lock_marker.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(50);

bool is_same_file(int fd, const Cache& cache, const fs::path& path) {
    struct stat open{}, named{};
    return ::fstat(fd, &open) == 0 && cache.folder().lstat(path, named) == 0 &&
           open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

struct Opened {
    base::UniqueFd fd;
    bool created = false;
};

// Creates the folder only when it turns out to be missing: once for many locks.
Opened open_lock_file(const Cache& cache, const fs::path& path) {
    const base::Folder& folder = cache.folder();
    for (int attempt = 0; attempt < 10; ++attempt) {
        base::UniqueFd fd = folder.open(path, O_RDWR | O_NONBLOCK);
        if (fd) {
            return {std::move(fd), false};
        }
        if (errno == EACCES) {  // another user's: reading is enough to lock it
            fd = folder.open(path, O_RDONLY | O_NONBLOCK);
            if (fd) {
                return {std::move(fd), false};
            }
        }
        if (errno != ENOENT) {
            break;
        }
        fd = folder.open(path, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0664);
        if (fd) {
            ::fchmod(fd.get(), 0664);  // like huggingface_hub: a group may share a cache
            return {std::move(fd), true};
        }
        if (errno == ENOENT ? folder.make_folders(path.parent_path()) != 0 : errno != EEXIST) {
            break;
        }
    }
    throw_cache_error(cache, path, errno);
}

}  // namespace

std::optional<BlobLock> BlobLock::try_lock(const Cache& cache, std::string_view repo_id,
                                           std::string_view etag) {
    const fs::path path = cache.lock_file(repo_id, etag);
    if (!cache.options().flock) {
        return create_marker(cache, path) ? std::optional(BlobLock(cache.folder(), path))
                                          : std::nullopt;
    }
    Opened lock = open_lock_file(cache, path);
    while (::flock(lock.fd.get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) {
            continue;
        }
        if (errno == ENOSYS || errno == ENOLCK || errno == EOPNOTSUPP) {
            if (lock.created) {
                cache.folder().unlink(path);
            }
            return create_marker(cache, path) ? std::optional(BlobLock(cache.folder(), path))
                                              : std::nullopt;
        }
        if (errno == EWOULDBLOCK || errno == EACCES) {
            return std::nullopt;
        }
        throw_cache_error(cache, path, errno);
    }
    // Another process removed the file between open and flock: that lock guards no name.
    if (!is_same_file(lock.fd.get(), cache, path)) {
        return std::nullopt;
    }
    return BlobLock(std::move(lock.fd));
}

BlobLock BlobLock::lock(const Cache& cache, std::string_view repo_id, std::string_view etag,
                        const std::function<void(const std::string&)>& waiting) {
    for (;;) {
        if (auto lock = try_lock(cache, repo_id, etag)) {
            return std::move(*lock);
        }
        waiting(lock_holder(cache, repo_id, etag));
        std::this_thread::sleep_for(poll_interval);
    }
}

BlobLock& BlobLock::operator=(BlobLock&& other) noexcept {
    if (this != &other) {
        release();
        fd_ = std::move(other.fd_);
        marker_ = std::exchange(other.marker_, std::nullopt);
    }
    return *this;
}

BlobLock::BlobLock(BlobLock&& other) noexcept
    : fd_(std::move(other.fd_)), marker_(std::exchange(other.marker_, std::nullopt)) {}

BlobLock::~BlobLock() {
    release();
}

void BlobLock::release() {
    fd_.reset();  // the file stays: removing it would part those who wait for it
    if (marker_) {
        remove_own_marker(marker_->folder, marker_->path);
        marker_.reset();
    }
}

void BlobLock::refresh() {
    if (marker_) {
        marker_->folder.touch(marker_->path);
    }
}

std::string lock_holder(const Cache& cache, std::string_view repo_id, std::string_view etag) {
    const fs::path path = cache.lock_file(repo_id, etag);
    std::string holder = marker_holder(cache.folder(), path);
    return holder.empty() ? flock_holder(cache.folder(), path) : holder;
}

}  // namespace twinkle::cache
