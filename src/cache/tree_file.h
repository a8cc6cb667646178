#pragma once
// The files of one commit as the Hub lists them, and their copy in the cache (trees/<commit>.json).
// A commit never changes, so its list is requested once.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/content_hash.h"
#include "cache/layout.h"

namespace twinkle::cache {

struct TreeFile {
    std::string path;
    std::uint64_t size = 0;
    std::string blob_id;                    // git's; of LFS files that of the pointer
    std::optional<std::string> lfs_sha256;  // LFS files only
    std::optional<std::string> xet_hash;

    ContentHash hash() const;
    // The name of its blob in the cache, and its ETag from the Hub.
    const std::string& etag() const { return lfs_sha256 ? *lfs_sha256 : blob_id; }

    bool operator==(const TreeFile&) const = default;
};

// Every file of the commit, by path. None: the list is missing or cannot be read (it is requested
// again then).
std::optional<std::vector<TreeFile>> read_tree(const Cache& cache, std::string_view repo_id,
                                               std::string_view commit);

}  // namespace twinkle::cache
