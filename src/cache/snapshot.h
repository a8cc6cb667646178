#pragma once
// Looking things up in the cache without the network.

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

// The commit that a branch or tag had when it was last asked for; a whole commit is itself.
std::optional<std::string> find_commit(const Cache& cache, std::string_view repo_id,
                                       std::string_view ref_or_commit);

// The same, if a folder of the commit is there, be it complete or not.
std::optional<Snapshot> find_snapshot(const Cache& cache, std::string_view repo_id,
                                      std::string_view ref_or_commit);

// Every branch and tag that the cache knows, with its commit, by name.
struct CachedRef {
    std::string name;
    std::string commit;
};
std::vector<CachedRef> list_refs(const Cache& cache, std::string_view repo_id);

// Is the file in the snapshot, links followed to the end? With a size: and has it that size?
bool has_file(const Cache& cache, std::string_view repo_id, std::string_view commit,
              std::string_view path, std::optional<std::uint64_t> size = std::nullopt);

// Was the Hub asked for the file before, and had none? The answer holds for ever.
bool is_known_missing(const Cache& cache, std::string_view repo_id, std::string_view commit,
                      std::string_view path);

}  // namespace twinkle::cache
