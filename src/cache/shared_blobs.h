#pragma once
// Blobs that several repositories share: blobs/<etag> of a repository is then itself a link, into
// <cache>/blobs/<2 hex>/<name>, and a list beside that file (<name>.refs) names the links. twinkle
// follows them and keeps them in order; it makes none.

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cache/layout.h"

namespace twinkle::cache {

// Where the blob of a repository really is, if it is shared.
std::optional<std::filesystem::path> shared_target(const Cache& cache,
                                                   const std::filesystem::path& blob);

// Removes a shared blob that no link names any more, and returns its size. Without a readable list
// it stays: that is never a reason to delete.
std::uint64_t sweep_shared(const Cache& cache, const std::filesystem::path& target);

}  // namespace twinkle::cache
