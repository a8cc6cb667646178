#pragma once
// Blobs that several repositories share: a repository's blobs/<etag> is then itself a link to
// <cache>/blobs/<2 hex>/<name>, and a list beside that file (<name>.refs) names the links. twinkle
// follows and maintains them, but creates none.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cache/layout.h"

namespace twinkle::cache {

// The file behind a repository's blob, if it is shared under the name of its hash: a file that may
// be removed.
std::optional<std::filesystem::path> shared_target(const Cache& cache,
                                                   const std::filesystem::path& blob);

// The file with the bytes: the blob's target if it is shared, else the blob.
std::filesystem::path bytes_of_blob(const Cache& cache, const std::filesystem::path& blob);
// False: there are no bytes, or the blob links to another place.
bool stat_blob(const Cache& cache, const std::filesystem::path& blob, struct stat& info);

// Removes a shared blob that no link names any more, and returns its size. It stays if its list
// cannot be read: that is never a reason to delete.
std::uint64_t sweep_shared(const Cache& cache, const std::filesystem::path& target);

}  // namespace twinkle::cache
