#pragma once
// Writing into the cache: folders, refs, links. Blobs arrive through partial_file.h.
//
// Nothing here waits for the disk: what a process wrote survives its end, however that comes. After
// a power cut a blob may be torn; `verify` finds that, since the name of a blob is its hash.

#include <cstdint>
#include <string_view>

#include "cache/layout.h"
#include "cache/tree_file.h"

namespace twinkle::cache {

// The folders of a repository, and CACHEDIR.TAG so that backups skip the cache. A cache that cannot
// be written to: Error(failed) that names it.
void prepare_repository(const Cache& cache, std::string_view repo_id);

// Is the whole blob there, double links followed?
bool has_blob(const Cache& cache, std::string_view repo_id, std::string_view etag,
              std::uint64_t size);

// A whole blob becomes a file of the snapshot: a relative symbolic link, or, where there are none,
// a hard link or a copy. What the snapshot had under that path is replaced in one step. False: the
// blob is gone.
bool link_into_snapshot(const Cache& cache, std::string_view repo_id, std::string_view commit,
                        const TreeFile& file);

// refs/<ref> = commit. Does nothing where it says so already; whole at every moment.
void write_ref(const Cache& cache, std::string_view repo_id, std::string_view ref,
               std::string_view commit);

}  // namespace twinkle::cache
