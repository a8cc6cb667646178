#include "project/locked_build.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "cache/content_hash.h"
#include "cache/tree_file.h"
#include "project/kernels_lock.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::project {
namespace {

// What differs; empty: nothing.
std::string difference(const LockedFile& locked, const LockedFile* found) {
    if (found == nullptr) {
        return "is missing";
    }
    if (found->size != locked.size) {
        return "has " + std::to_string(found->size) + " bytes, not " + std::to_string(locked.size);
    }
    const auto differs = [](const char* what, const std::string& is, const std::string& wanted) {
        return is == wanted ? "" : std::string("differs: its ") + what + is + ", not " + wanted;
    };
    return locked.sha256.empty() ? differs("blob id is ", found->git_sha1, locked.git_sha1)
                                 : differs("SHA-256 is ", found->sha256, locked.sha256);
}

// The folder's files as the Hub would list them; none where it cannot be told which are in LFS.
std::optional<std::vector<cache::TreeFile>> tree_of(const std::string& prefix,
                                                    const std::vector<cache::TreeFile>& known,
                                                    const fs::path& folder,
                                                    std::span<const MappedFile> files) {
    std::map<std::string, bool> in_lfs;
    for (const cache::TreeFile& file : known) {
        in_lfs[file.path] = file.lfs_sha256.has_value();
    }
    std::vector<cache::TreeFile> tree;
    for (const MappedFile& file : files) {
        const auto listed = in_lfs.find(prefix + file.path);
        std::error_code error;
        const std::string blob = fs::read_symlink(folder / file.path, error).filename().string();
        if (listed == in_lfs.end() && !cache::is_etag(blob)) {
            return std::nullopt;
        }
        const bool lfs = listed != in_lfs.end() ? listed->second : blob.size() == 64;
        cache::TreeFile entry{prefix + file.path, file.size, "", std::nullopt, std::nullopt};
        if (lfs) {
            entry.lfs_sha256 = file.sha256;
        } else {
            entry.blob_id = cache::hash_file_as(folder / file.path, cache::HashKind::git_sha1);
        }
        tree.push_back(std::move(entry));
    }
    return tree;
}

}  // namespace

std::vector<std::string> lock_differences(const LockedVariant& locked,
                                          std::span<const LockedFile> found) {
    std::map<std::string_view, const LockedFile*> open;
    for (const LockedFile& file : found) {
        open[file.path] = &file;
    }
    std::vector<std::string> differences;
    for (const LockedFile& file : locked.files) {
        const auto there = open.find(file.path);
        const std::string what = difference(file, there == open.end() ? nullptr : there->second);
        if (!what.empty()) {
            differences.push_back(base::printable(file.path) + " " + what);
        }
        open.erase(file.path);
    }
    for (const auto& [path, file] : open) {
        differences.push_back(base::printable(path) + " is not in the lock");
    }
    return differences;
}

void check_locked_build(const LockedVariant& locked, const fs::path& folder,
                        std::span<const MappedFile> files, const std::string& name,
                        const std::string& hint) {
    std::vector<LockedFile> found;
    for (const MappedFile& file : files) {
        const LockedFile* known = locked.find(file.path);
        const bool by_git = known != nullptr && known->sha256.empty();
        found.push_back(
            {file.path, file.size,
             by_git ? cache::hash_file_as(folder / file.path, cache::HashKind::git_sha1) : "",
             file.sha256});
    }
    const std::vector<std::string> reasons = lock_differences(locked, found);
    if (!reasons.empty()) {
        throw Error(ErrorCode::verification, {.what = "the files of " + base::printable(name) +
                                                      " are not those that were locked",
                                              .where = base::display_path(folder),
                                              .why = base::join(reasons, "\n         "),
                                              .hint = hint});
    }
}

bool check_concat_hash(const LockedKernel& kernel, const LockedVariant& locked,
                       const cache::Cache& cache, const fs::path& folder,
                       std::span<const MappedFile> files) {
    const std::string prefix = "build/" + locked.name + "/";
    const auto known = cache::read_tree(cache, kernel.name, kernel.commit);
    const auto tree =
        tree_of(prefix, known.value_or(std::vector<cache::TreeFile>()), folder, files);
    if (!tree) {
        return false;
    }
    if (const std::string hash = concat_hash(locked.name, *tree); hash != locked.concat_hash) {
        throw Error(ErrorCode::verification,
                    {.what = "the files of " + kernel.text() + " are not those that were locked",
                     .where = base::display_path(folder),
                     .why = "the hash over the build is " + hash + ", not " + locked.concat_hash,
                     .hint = "twinkle cache verify finds damaged files, twinkle fetch gets them "
                             "again"});
    }
    return true;
}

}  // namespace twinkle::project
