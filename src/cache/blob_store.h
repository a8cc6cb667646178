#pragma once
// Writing into the cache: folders, refs, links. Blobs arrive through partial_file.h.
//
// Nothing here waits for the disk: written data survives any end of the process. After a power cut
// a blob may be torn; `verify` finds that, since the name of a blob is its hash.

#include <cstdint>
#include <string_view>

#include "cache/layout.h"
#include "cache/tree_file.h"

namespace twinkle::cache {

// Creates the folders of a repository, and CACHEDIR.TAG so that backups skip the cache. Throws
// Error(failed), naming the cache, if it cannot be written to.
void prepare_repository(const Cache& cache, std::string_view repo_id);

// Whether the complete blob exists, links to shared blobs followed.
bool has_blob(const Cache& cache, std::string_view repo_id, std::string_view etag,
              std::uint64_t size);

// Makes a complete blob a file of the snapshot: by a relative symbolic link or, where there are
// none, a hard link or a copy. Replaces in one step what the snapshot had under that path. False:
// the blob is gone.
bool link_into_snapshot(const Cache& cache, std::string_view repo_id, std::string_view commit,
                        const TreeFile& file);

// Sets refs/<ref> = commit, atomically. Does nothing if it is so already.
void write_ref(const Cache& cache, std::string_view repo_id, std::string_view ref,
               std::string_view commit);

}  // namespace twinkle::cache
