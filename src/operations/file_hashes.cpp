#include "operations/file_hashes.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "base/evp.h"
#include "base/file.h"
#include "base/parallel.h"
#include "cache/content_hash.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::operations {
namespace {

class Meter {
public:
    Meter(std::uint64_t total, const std::function<void(std::uint64_t, std::uint64_t)>& tell)
        : total_(total), tell_(tell) {}

    void add(std::uint64_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        done_ += bytes;
        if (tell_) {
            tell_(done_, total_);
        }
    }

private:
    std::uint64_t total_;
    std::uint64_t done_ = 0;
    const std::function<void(std::uint64_t, std::uint64_t)>& tell_;
    std::mutex mutex_;
};

void hash_one(HashJob& job, const std::atomic<bool>& stop, Meter& meter) {
    if (job.missing) {
        return;
    }
    base::EvpDigest sha256(base::DigestKind::sha256);
    base::EvpDigest sha512(base::DigestKind::sha512);
    cache::ContentHasher git(cache::HashKind::git_sha1, job.size);
    const std::uint64_t announced = job.size;
    job.size = base::stream_file(job.file, "file of a kernel", [&](std::string_view bytes) {
        if (stop) {
            throw Error(ErrorCode::interrupted,
                        {.what = "interrupted", .where = {}, .why = {}, .hint = {}});
        }
        if (job.sha256) {
            sha256.update(bytes);
        }
        if (job.sha512) {
            sha512.update(bytes);
        }
        if (job.git_sha1) {
            git.update(bytes);
        }
        meter.add(bytes.size());
    });
    job.sha256_bytes = job.sha256 ? sha256.finish() : "";
    job.sha512_bytes = job.sha512 ? sha512.finish() : "";
    // The size is part of what git hashes; a file that changed under our hands fits nothing.
    job.git_sha1_hex = job.git_sha1 && job.size == announced ? git.finish_hex() : "";
}

}  // namespace

void hash_files(std::vector<HashJob>& jobs, const std::atomic<bool>& stop,
                const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
    std::uint64_t total = 0;
    for (auto& job : jobs) {
        std::error_code error;
        job.size = fs::file_size(job.file, error);
        job.missing = static_cast<bool>(error);
        total += job.missing ? 0 : job.size;
    }
    // The largest first, so that no core is left with one at the end.
    std::vector<std::size_t> order(jobs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return jobs[a].size > jobs[b].size; });
    Meter meter(total, progress);
    base::parallel_for(jobs.size(), 0,
                       [&](std::size_t i) { hash_one(jobs[order[i]], stop, meter); });
}

}  // namespace twinkle::operations
