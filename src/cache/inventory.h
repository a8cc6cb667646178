#pragma once
// The contents of one repository in the cache, read once: the basis of list, verify, prune and
// clean.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/layout.h"
#include "cache/partial_file.h"

namespace twinkle::cache {

struct SnapshotFile {
    std::string path;  // in the repository
    std::string etag;  // of the blob that it links to; empty: the file itself has the bytes
    std::uint64_t size = 0;
    std::pair<dev_t, ino_t> identity{};  // of the bytes
    std::string flaw;                    // why it shows no bytes of the cache; empty: it does
};

struct BlobFile {
    std::uint64_t size = 0;
    std::pair<dev_t, ino_t> identity{};
    std::string flaw;  // why it has no bytes; empty: it has
};

struct Inventory {
    std::string repo_id;
    std::map<std::string, std::vector<SnapshotFile>> snapshots;  // by commit
    std::map<std::string, BlobFile> blobs;                       // by etag
    PartialFiles partial;
    std::vector<std::filesystem::path> temporary;  // left by killed writers
};

// The blobs that snapshot files link to, by links of either kind.
std::set<std::string> shown_blobs(const Inventory& inventory);

Inventory take_inventory(const Cache& cache, const std::string& repo_id);

// Symbolic links in the place of folders of the cache's kernels, sorted. Their targets do not
// belong to the cache: they are not read, and nothing in them is removed.
std::vector<std::filesystem::path> linked_folders(const Cache& cache);

// The kernels in the cache, sorted. A missing cache has none.
std::vector<std::string> cached_repositories(const Cache& cache);

// "torch210-…" in "build/torch210-…/x.so"; empty for files outside of build/.
std::string_view variant_of(std::string_view path);

}  // namespace twinkle::cache
