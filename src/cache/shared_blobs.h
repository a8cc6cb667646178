#pragma once
// Blobs that several repositories share: blobs/<etag> of a repository is then itself a link, into
// <cache>/blobs/<2 hex>/<name>, and a list beside that file (<name>.refs) names the links. twinkle
// follows them and keeps them in order; it makes none.

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "cache/layout.h"

namespace twinkle::cache {

// Where the blob of a repository really is, if it is shared under the name of its hash: a file that
// may be removed.
std::optional<std::filesystem::path> shared_target(const Cache& cache,
                                                   const std::filesystem::path& blob);

// The file that has the bytes: what the blob links to if it is shared, else the blob.
std::filesystem::path bytes_of_blob(const Cache& cache, const std::filesystem::path& blob);
// False: there are no bytes, or the blob is a link to anywhere else.
bool stat_blob(const Cache& cache, const std::filesystem::path& blob, struct stat& info);

// Removes a shared blob that no link names any more, and returns its size. Without a readable list
// it stays: that is never a reason to delete.
std::uint64_t sweep_shared(const Cache& cache, const std::filesystem::path& target);

}  // namespace twinkle::cache
