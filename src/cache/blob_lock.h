#pragma once
// One process at a time writes a blob, under the lock that huggingface_hub takes,
// .locks/<repository>/<etag>.lock, so that both tools can fill one cache at the same time and every
// byte is downloaded once. Correctness does not depend on it: a blob is complete from the moment it
// has its name, even on a file system that only pretends to lock.

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "cache/layout.h"

namespace twinkle::cache {

// flock(2) or, on a file system without it, a file that its holder creates and removes (with the
// holder's process and host in it, as in Python's filelock).
class BlobLock {
public:
    // None: another process holds it. Error(failed): the cache cannot be written to.
    static std::optional<BlobLock> try_lock(const Cache& cache, std::string_view repo_id,
                                            std::string_view etag);

    // Waits. `waiting` is called now and then with the holder ("process 4711", or nothing if it is
    // unknown); it ends the wait by throwing.
    static BlobLock lock(const Cache& cache, std::string_view repo_id, std::string_view etag,
                         const std::function<void(const std::string& holder)>& waiting);

    BlobLock(BlobLock&& other) noexcept;
    BlobLock& operator=(BlobLock&& other) noexcept;
    ~BlobLock();

    // Tells other machines that the holder is alive; call it about once a minute while holding a
    // lock for long. Does nothing where flock works.
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

// The lock's holder, for messages: "process 4711", "process 4711 on host". Empty: unknown.
std::string lock_holder(const Cache& cache, std::string_view repo_id, std::string_view etag);

}  // namespace twinkle::cache
