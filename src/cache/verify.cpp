#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cache/blob_lock.h"
#include "cache/cache_error.h"
#include "cache/content_hash.h"
#include "cache/inventory.h"
#include "cache/maintain.h"
#include "cache/shared_blobs.h"
#include "cache/tree_file.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr auto progress_interval = std::chrono::milliseconds(100);

// One file to hash. Counts as damaged until shown otherwise.
struct Check {
    DamagedBlob blob;
    std::uint64_t size = 0;
    bool whole = false;
};

void add_blobs(const Cache& cache, const Inventory& inventory, std::vector<Check>& checks) {
    for (const auto& [etag, blob] : inventory.blobs) {
        Check check;
        check.blob = {inventory.repo_id, etag, cache.blob(inventory.repo_id, etag), "",
                      blob.flaw,         {}};
        check.size = blob.size;
        checks.push_back(std::move(check));
    }
}

// The name of a file that is no link does not tell its hash: the commit's list does, if it is
// cached.
void add_copies(const Cache& cache, const Inventory& inventory, std::vector<Check>& checks) {
    for (const auto& [commit, files] : inventory.snapshots) {
        const bool copies = std::any_of(files.begin(), files.end(), [](const SnapshotFile& file) {
            return file.etag.empty() && file.flaw.empty();
        });
        const auto tree = copies ? read_tree(cache, inventory.repo_id, commit) : std::nullopt;
        for (const SnapshotFile& file : files) {
            if (!tree || !file.etag.empty() || !file.flaw.empty()) {
                continue;
            }
            const auto listed = std::lower_bound(
                tree->begin(), tree->end(), file.path,
                [](const TreeFile& a, const std::string& b) { return a.path < b; });
            if (listed == tree->end() || listed->path != file.path) {
                continue;
            }
            const auto blob = inventory.blobs.find(listed->etag());
            if (blob != inventory.blobs.end() && blob->second.identity == file.identity) {
                continue;  // a hard link: hashed with the blob
            }
            Check check;
            check.blob = {inventory.repo_id,
                          listed->etag(),
                          cache.file(inventory.repo_id, commit, file.path),
                          "",
                          "",
                          {}};
            check.blob.paths.push_back(commit + "/" + file.path);
            check.size = file.size;
            checks.push_back(std::move(check));
        }
    }
}

// Adds links whose blob is gone, and those that lead elsewhere than into the blobs.
void add_flawed(const Cache& cache, const Inventory& inventory, std::vector<DamagedBlob>& damaged) {
    for (const auto& [commit, files] : inventory.snapshots) {
        for (const SnapshotFile& file : files) {
            if (!file.flaw.empty() && !inventory.blobs.contains(file.etag)) {
                damaged.push_back({inventory.repo_id,
                                   file.etag,
                                   cache.file(inventory.repo_id, commit, file.path),
                                   "",
                                   file.flaw,
                                   {commit + "/" + file.path}});
            }
        }
    }
}

void add_paths(const std::vector<Inventory>& inventories, std::vector<DamagedBlob>& damaged) {
    for (DamagedBlob& blob : damaged) {
        const auto inventory =
            std::find_if(inventories.begin(), inventories.end(),
                         [&](const Inventory& each) { return each.repo_id == blob.repo_id; });
        if (!blob.paths.empty() || inventory == inventories.end()) {
            continue;
        }
        const auto original = inventory->blobs.find(blob.etag);
        for (const auto& [commit, files] : inventory->snapshots) {
            for (const SnapshotFile& file : files) {
                const bool hard_link = file.etag.empty() && file.flaw.empty() &&
                                       original != inventory->blobs.end() &&
                                       original->second.identity == file.identity;
                if ((!file.etag.empty() && file.etag == blob.etag) || hard_link) {
                    blob.paths.push_back(commit + "/" + file.path);
                }
            }
        }
    }
}

std::string hash_of(const Cache& cache, const DamagedBlob& blob,
                    const std::function<void(std::size_t)>& each = {}) {
    return hash_open_file(
        cache.folder().open(bytes_of_blob(cache, blob.file), O_RDONLY | O_NONBLOCK), blob.file,
        kind_of_etag(blob.etag), each);
}

// Hashes on several threads while the caller's thread reports.
class Hashers {
public:
    Hashers(const Cache& cache, std::vector<Check>& checks, const std::atomic<bool>& stop)
        : cache_(cache), checks_(checks), stop_(stop) {}

    void run(unsigned threads, const std::function<void(std::uint64_t)>& report) {
        threads = std::clamp<unsigned>(threads, 1, static_cast<unsigned>(checks_.size() + 1));
        working_ = threads;
        std::vector<std::jthread> workers;
        for (unsigned i = 0; i < threads; ++i) {
            workers.emplace_back([this] { work(); });
        }
        std::unique_lock lock(mutex_);
        while (!finished_.wait_for(lock, progress_interval, [&] { return working_ == 0; })) {
            lock.unlock();
            report(bytes_);
            lock.lock();
        }
    }

    std::uint64_t bytes() const { return bytes_; }

private:
    struct Stopped {};

    void work() {
        for (std::size_t i = next_++; i < checks_.size() && !stop_; i = next_++) {
            check(checks_[i]);
        }
        const std::lock_guard lock(mutex_);
        if (--working_ == 0) {
            finished_.notify_one();
        }
    }

    void check(Check& check) {
        if (!check.blob.why.empty()) {
            return;
        }
        try {
            check.blob.found = hash_of(cache_, check.blob, [this](std::size_t bytes) {
                bytes_ += bytes;
                if (stop_) {
                    throw Stopped{};
                }
            });
            check.whole = check.blob.found == check.blob.etag;
        } catch (const Error& error) {
            check.blob.why = error.details().why;
        } catch (const Stopped&) {
            check.whole = true;  // the caller sees the flag
        }
    }

    const Cache& cache_;
    std::vector<Check>& checks_;
    const std::atomic<bool>& stop_;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::uint64_t> bytes_{0};
    std::mutex mutex_;
    std::condition_variable finished_;
    unsigned working_ = 0;
};

}  // namespace

VerifyReport verify(const Cache& cache, const std::vector<std::string>& repositories,
                    unsigned threads, const std::atomic<bool>& stop,
                    const std::function<void(const VerifyProgress&)>& progress) {
    VerifyReport report;
    report.links = linked_folders(cache);
    std::vector<Inventory> inventories;
    std::vector<Check> checks;
    for (const std::string& repo_id :
         repositories.empty() ? cached_repositories(cache) : repositories) {
        inventories.push_back(take_inventory(cache, repo_id));
        add_blobs(cache, inventories.back(), checks);
        add_copies(cache, inventories.back(), checks);
        add_flawed(cache, inventories.back(), report.damaged);
    }
    // The largest go first: a thread that gets one last would work alone.
    std::stable_sort(checks.begin(), checks.end(),
                     [](const Check& a, const Check& b) { return a.size > b.size; });
    std::uint64_t total = 0;
    for (const Check& check : checks) {
        total += check.size;
    }
    Hashers hashers(cache, checks, stop);
    hashers.run(threads != 0 ? threads : std::thread::hardware_concurrency(),
                [&](std::uint64_t bytes) {
                    if (progress) {
                        progress({bytes, total});
                    }
                });
    if (stop) {
        throw Error(ErrorCode::interrupted,
                    {.what = "interrupted", .where = "", .why = "", .hint = ""});
    }
    report.blobs = checks.size();
    report.bytes = hashers.bytes();
    for (Check& check : checks) {
        if (!check.whole) {
            report.damaged.push_back(std::move(check.blob));
        }
    }
    add_paths(inventories, report.damaged);
    std::sort(report.damaged.begin(), report.damaged.end(),
              [](const DamagedBlob& a, const DamagedBlob& b) {
                  return std::tie(a.repo_id, a.etag, a.file) < std::tie(b.repo_id, b.etag, b.file);
              });
    return report;
}

void remove_damaged(const Cache& cache, const std::vector<DamagedBlob>& damaged) {
    for (const DamagedBlob& blob : damaged) {
        std::optional<BlobLock> lock;
        if (is_etag(blob.etag)) {
            lock = BlobLock::try_lock(cache, blob.repo_id, blob.etag);
            struct stat info{};
            // Another process is writing it anew, or has done so since the check.
            if (!lock || (stat_blob(cache, blob.file, info) && hash_of(cache, blob) == blob.etag)) {
                continue;
            }
        }
        for (const std::string& path : blob.paths) {
            cache.folder().unlink(cache.repository(blob.repo_id) / "snapshots" / path);
        }
        // The shared bytes are wrong for every repository that links to them.
        if (const auto target = shared_target(cache, blob.file)) {
            cache.folder().unlink(*target);
        }
        if (cache.folder().unlink(blob.file) != 0 && errno != ENOENT) {
            throw_cache_error(cache, blob.file, errno);
        }
    }
}

}  // namespace twinkle::cache
