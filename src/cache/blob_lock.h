#pragma once
// One blob is written by one process at a time: the lock that huggingface_hub takes,
// .locks/<repository>/<etag>.lock, so that both tools can fill one cache at the same time and every
// byte is downloaded once. Nothing depends on it but that: a blob is whole from the moment it has
// its name, also where a file system pretends to lock.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "cache/layout.h"

namespace twinkle::cache {

// flock(2), or, where the file system has none, a file that is created by its holder and removed
// again (its process and host are written in it, as filelock does).
class BlobLock {
public:
    // None: somebody else has it. Error(failed): the cache cannot be written to.
    static std::optional<BlobLock> try_lock(const Cache& cache, std::string_view repo_id,
                                            std::string_view etag);

    // Waits. `waiting` is called every now and then with who holds the lock ("process 4711", or
    // nothing where it cannot be told); it ends the wait by throwing.
    static BlobLock lock(const Cache& cache, std::string_view repo_id, std::string_view etag,
                         const std::function<void(const std::string& holder)>& waiting);

    BlobLock(BlobLock&& other) noexcept;
    BlobLock& operator=(BlobLock&& other) noexcept;
    ~BlobLock();

    // Says that the holder is alive, for other machines; to be called about once a minute while a
    // lock is held for long. Does nothing where flock works.
    void refresh();

private:
    struct Marker {
        base::Folder folder;
        std::filesystem::path path;
    };
    explicit BlobLock(base::UniqueFd fd) : fd_(std::move(fd)) {}
    BlobLock(const base::Folder& folder, std::filesystem::path marker)
        : marker_({folder, std::move(marker)}) {}
    void release();

    base::UniqueFd fd_;
    std::optional<Marker> marker_;  // none where flock works
};

// Who holds the lock, for people: "process 4711", "process 4711 on host". Empty: not known.
std::string lock_holder(const Cache& cache, std::string_view repo_id, std::string_view etag);

}  // namespace twinkle::cache
