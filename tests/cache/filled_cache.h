#pragma once
// A cache with repositories in it, as a download leaves them.

#include <string>
#include <vector>

#include "../base/temp_folder.h"
#include "base/json.h"
#include "cache/blob_store.h"
#include "cache/content_hash.h"
#include "cache/layout.h"
#include "cache/tree_file.h"

namespace twinkle::test {

const std::string repo = "org/name";
const std::string commit_a(40, 'a');
const std::string commit_b(40, 'b');

struct FileOf {
    std::string path;
    std::string text;
    bool lfs = false;
};

inline cache::TreeFile tree_file(const FileOf& file) {
    cache::TreeFile tree;
    tree.path = file.path;
    tree.size = file.text.size();
    tree.blob_id = cache::hash_bytes(file.text, cache::HashKind::git_sha1);
    if (file.lfs) {
        tree.lfs_sha256 = cache::hash_bytes(file.text, cache::HashKind::sha256);
    }
    return tree;
}

// trees/<commit>.json, as the Python tools write it.
inline void write_tree(const cache::Cache& cache, const std::string& repo_id,
                       const std::string& commit, const std::vector<cache::TreeFile>& files) {
    base::Json entries = base::Json::object();
    for (const cache::TreeFile& file : files) {
        base::Json& entry = entries[file.path];
        entry = {{"size", file.size}, {"blob_id", file.blob_id}};
        if (file.lfs_sha256) {
            entry["lfs_sha256"] = *file.lfs_sha256;
            entry["lfs_size"] = file.size;
        }
        if (file.xet_hash) {
            entry["xet_hash"] = *file.xet_hash;
        }
    }
    const base::Json document = {{"format_version", 1}, {"files", entries}};
    const auto path = cache.tree_file(repo_id, commit);
    cache.folder().make_folders(path.parent_path());
    cache.folder().write_file(path, document.dump(1));
}

class FilledCache {
public:
    explicit FilledCache(cache::CacheOptions options = {}) : cache(folder / "hub", options) {}

    void add(const std::string& repo_id, const std::string& commit, const std::string& ref,
             const std::vector<FileOf>& files) const {
        cache::prepare_repository(cache, repo_id);
        std::vector<cache::TreeFile> tree;
        for (const FileOf& file : files) {
            tree.push_back(tree_file(file));
            const auto blob = cache.blob(repo_id, tree.back().etag());
            folder.write(blob.lexically_relative(folder.path()), file.text);
            cache::link_into_snapshot(cache, repo_id, commit, tree.back());
        }
        write_tree(cache, repo_id, commit, tree);
        cache::write_ref(cache, repo_id, ref, commit);
    }

    TempFolder folder;
    cache::Cache cache;
};

}  // namespace twinkle::test
