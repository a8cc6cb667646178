#pragma once
// The layout of the cache that twinkle shares with the Python tools (`kernels`, huggingface_hub):
//
//     CACHEDIR.TAG
//     .locks/kernels--org--name/<etag>.lock
//     kernels--org--name/blobs/<etag>                  the bytes, under the hash that names them
//                        refs/<ref>                    the commit of a branch or tag
//                        snapshots/<commit>/<path>     relative symbolic link into blobs
//                        .no_exist/<commit>/<path>     known not to be there
//                        trees/<commit>.json           every file of the commit with its hash
//     blobs/<2 hex>/…                                  blobs that several repositories share

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/folder.h"
#include "target/machine.h"

namespace twinkle::cache {

// KERNELS_CACHE, else HF_HUB_CACHE, else $HF_HOME/hub, else the default below the home folder.
std::filesystem::path cache_folder(const target::Machine& machine);

// "kernels--org--name". Throws Error(malformed) for a text that is no name of a repository.
std::string repository_folder(std::string_view repo_id);
// The inverse; none for the folders of models, of locks, of shared blobs, ….
std::optional<std::string> repository_of(std::string_view folder_name);

// "org/name" as the Hub allows it, which is also safe as the name of a folder.
bool is_repository_id(std::string_view text);
bool is_commit(std::string_view text);  // 40 or 64 hex digits in lower case
bool is_etag(std::string_view text);    // the same: git blob id or SHA-256
// Stays below its folder and has one spelling only: no empty, "." or ".." part, no leading slash,
// no control character. Holds for refs ("refs/pr/1") and for paths in a repository.
bool is_safe_path(std::string_view path);

struct CacheOptions {
    bool symlinks = true;  // false: snapshots hold files, not links (HF_HUB_DISABLE_SYMLINKS)
    bool flock = true;     // false: as on a file system without flock(2)
};

// Computes paths only; reads nothing. All functions throw Error(malformed) for names that would
// lead outside of the folder they belong to.
class Cache {
public:
    explicit Cache(std::filesystem::path root, CacheOptions options = {});

    const std::filesystem::path& root() const { return folder_.root(); }
    // All reads and writes of the cache go through it.
    const base::Folder& folder() const { return folder_; }
    const CacheOptions& options() const { return options_; }

    // The target of a relative link, as a path from the root; looks only at the link itself. None:
    // it is no link, or it leaves the cache.
    std::optional<std::filesystem::path> link_target(const std::filesystem::path& link) const;

    std::filesystem::path repository(std::string_view repo_id) const;
    std::filesystem::path blobs(std::string_view repo_id) const;
    std::filesystem::path blob(std::string_view repo_id, std::string_view etag) const;
    std::filesystem::path snapshot(std::string_view repo_id, std::string_view commit) const;
    std::filesystem::path file(std::string_view repo_id, std::string_view commit,
                               std::string_view path) const;
    std::filesystem::path ref_file(std::string_view repo_id, std::string_view ref) const;
    std::filesystem::path tree_file(std::string_view repo_id, std::string_view commit) const;
    std::filesystem::path lock_file(std::string_view repo_id, std::string_view etag) const;

private:
    base::Folder folder_;
    CacheOptions options_;
};

// The cache of this user: its folder and HF_HUB_DISABLE_SYMLINKS.
Cache cache_of(const target::Machine& machine);

}  // namespace twinkle::cache
