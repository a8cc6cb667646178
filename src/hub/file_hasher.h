#pragma once
// Hashes large files while they arrive, in its own threads: it reads written bytes back from the
// page cache, so that nothing is buffered and the network does not wait.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cache/content_hash.h"
#include "cache/partial_file.h"

namespace twinkle::hub {

class FileHasher {
public:
    // `finished` is called on a hasher thread: with the hash, or with the error that ended the
    // reading.
    using Finished = std::function<void(const std::string& hex, std::exception_ptr error)>;

    FileHasher() = default;
    ~FileHasher();  // drops unfinished tasks
    FileHasher(const FileHasher&) = delete;
    FileHasher& operator=(const FileHasher&) = delete;

    class Task;
    using Handle = std::shared_ptr<Task>;
    // The file must live until the task has finished or was dropped.
    Handle add(const cache::PartialFile& file, cache::HashKind kind, Finished finished);
    // Bytes before `front` are written.
    void advance(const Handle& task, std::uint64_t front);
    // Returns when no thread reads the file any more; `finished` is not called after that.
    void drop(const Handle& task);

private:
    void work();
    Handle next();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<Handle> tasks_;
    std::vector<std::thread> threads_;
    bool closing_ = false;
};

}  // namespace twinkle::hub
