#pragma once
// Lookups in the cache, without the network.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/layout.h"
#include "cache/tree_file.h"

namespace twinkle::cache {

struct Snapshot {
    std::string commit;
    std::filesystem::path folder;
};

// The commit that a branch or tag had when it was last looked up on the Hub; a full commit is
// itself.
std::optional<std::string> find_commit(const Cache& cache, std::string_view repo_id,
                                       std::string_view ref_or_commit);

// The same, if the commit has a folder, complete or not.
std::optional<Snapshot> find_snapshot(const Cache& cache, std::string_view repo_id,
                                      std::string_view ref_or_commit);

// Whether the commit has a folder.
bool has_snapshot(const Cache& cache, std::string_view repo_id, std::string_view commit);

// The blob that a file of a snapshot links to. None: it is no link, or it leads elsewhere than into
// the blobs of its repository, which no tool creates.
std::optional<std::string> linked_etag(const Cache& cache, std::string_view repo_id,
                                       const std::filesystem::path& link);

// Every branch and tag that the cache knows, with its commit, by name.
struct CachedRef {
    std::string name;
    std::string commit;
};
std::vector<CachedRef> list_refs(const Cache& cache, std::string_view repo_id);

// Whether the file is in the snapshot, or its link leads to an existing blob. With `size`: and has
// that size.
bool has_file(const Cache& cache, std::string_view repo_id, std::string_view commit,
              std::string_view path, std::optional<std::uint64_t> size = std::nullopt);

}  // namespace twinkle::cache
