#pragma once
// Downloads from the Hub into the cache: many files at once, large ones in ranges, resumed where an
// earlier process stopped, hashed while they arrive.

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/layout.h"
#include "cache/tree_file.h"
#include "hub/api.h"

namespace twinkle::hub {

struct DownloadItem {
    std::string repo_id;
    std::string commit;
    std::vector<cache::TreeFile> files;
};

struct DownloadFile {
    std::string repo_id;
    std::string commit;
    std::string path;
    std::uint64_t size = 0;
};

// Called on the thread that called download(). An exception ends the download.
class DownloadObserver {
public:
    virtual ~DownloadObserver() = default;
    // Once, before the first request: the files that are not in the cache.
    virtual void planned(std::uint64_t /*files*/, std::uint64_t /*bytes*/) {}
    // `done` bytes are there already, from an earlier attempt.
    virtual void file_started(const DownloadFile& /*file*/, std::uint64_t /*done*/) {}
    // Called after every packet; `done` is less than before if a file must be started over.
    virtual void file_progress(const DownloadFile& /*file*/, std::uint64_t /*done*/) {}
    // `from_cache`: another process has downloaded it meanwhile.
    virtual void file_done(const DownloadFile& /*file*/, bool /*from_cache*/) {}
    // Another process downloads it: "process 4711", or nothing if that is unknown. Once per
    // file.
    virtual void file_waiting(const DownloadFile& /*file*/, const std::string& /*holder*/) {}
};

struct DownloadResult {
    std::uint64_t files_downloaded = 0;  // by this call; contents that are equal count once
    std::uint64_t bytes_downloaded = 0;  // received, repeated ones too
    std::uint64_t files_present = 0;     // of the requested ones, present at the start
    std::uint64_t bytes_resumed = 0;     // from earlier attempts, not received again
};

// Afterwards every file of every item is in its snapshot. Files in the cache cost no request,
// others one request, or one per range of a large file. Errors: those of Hub; verification (wrong
// bytes twice: the second time from the start), failed (the cache cannot be written to, the disk is
// full), interrupted. Whatever the error, nothing wrong is visible in a snapshot, and the next call
// resumes what has arrived.
DownloadResult download(Hub& hub, const cache::Cache& cache, std::span<const DownloadItem> items,
                        DownloadObserver& observer, const std::atomic<bool>& stop);

}  // namespace twinkle::hub
