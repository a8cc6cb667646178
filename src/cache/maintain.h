#pragma once
// The cache's contents, its damage, and what can be removed. Looks at kernels only: models and
// datasets in the same cache are never touched.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/layout.h"

namespace twinkle::cache {

struct CachedRevision {
    std::string commit;
    std::vector<std::string> refs;      // branches and tags that point at it
    std::vector<std::string> variants;  // folders below build/
    std::uint64_t files = 0;
    std::uint64_t size = 0;  // of its files; revisions share blobs
};

struct CachedRepository {
    std::string repo_id;
    std::filesystem::path folder;
    std::vector<CachedRevision> revisions;  // by commit
    std::uint64_t size = 0;                 // on disk, every blob once
    std::uint64_t partial_files = 0;
    std::uint64_t partial_size = 0;
};

// Lists by repository. A missing cache is empty.
std::vector<CachedRepository> list(const Cache& cache);

struct DamagedBlob {
    std::string repo_id;
    std::string etag;
    std::filesystem::path file;      // the blob, or the file of a snapshot without links
    std::string found;               // its hash; empty where it cannot be read
    std::string why;                 // if it cannot be read, or a link is broken
    std::vector<std::string> paths;  // "<commit>/<path>" in the snapshots that show it
};

struct VerifyProgress {
    std::uint64_t bytes = 0;
    std::uint64_t total = 0;
};

struct VerifyReport {
    std::uint64_t blobs = 0;
    std::uint64_t bytes = 0;
    std::vector<DamagedBlob> damaged;  // by repository and etag
    // Links in the place of folders: their targets were not looked at, and stay.
    std::vector<std::filesystem::path> links;
};

// Hashes every blob on all cores (`threads` 0) and compares with its name. `repositories` empty:
// all. Throws Error(interrupted) when `stop` is set.
VerifyReport verify(const Cache& cache, const std::vector<std::string>& repositories,
                    unsigned threads, const std::atomic<bool>& stop,
                    const std::function<void(const VerifyProgress&)>& progress = {});

// Removes damaged blobs from the cache, with the links to them, so that a fetch gets them again.
void remove_damaged(const Cache& cache, const std::vector<DamagedBlob>& damaged);

// The files to remove, and how many bytes that frees. Made by plan_…, shown by --dry-run, carried
// out by remove().
struct Removal {
    std::vector<std::filesystem::path> files;          // links, blobs, refs, trees, partial files
    std::vector<std::filesystem::path> folders;        // with all that is in them
    std::vector<std::filesystem::path> empty_folders;  // if nothing is left in them
    std::uint64_t bytes = 0;
    struct Revision {
        std::string repo_id;
        std::string commit;
        std::vector<std::string> variants;  // empty: the whole revision
    };
    std::vector<Revision> revisions;  // for people
};

struct Keep {
    std::string repo_id;
    std::string commit;
    std::optional<std::vector<std::string>> variants;  // none: all of them
};

// Everything except `keep`: other revisions, other variants, and unreferenced blobs. Files outside
// of build/ stay with a revision that is kept.
Removal plan_prune(const Cache& cache, const std::vector<Keep>& keep);
// Takes only leftovers: partial files, blobs that no snapshot links to, temporary files.
Removal plan_clean(const Cache& cache);

// Keeps blobs that a running process is writing. Returns the bytes that were freed.
std::uint64_t remove(const Cache& cache, const Removal& removal);

}  // namespace twinkle::cache
