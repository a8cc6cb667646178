#include "cache/blob_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/file.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "cache/cache_error.h"
#include "cache/random_name.h"
#include "cache/shared_blobs.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::string_view cache_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of the Hugging Face Hub: backups can leave it out.\n"
    "# https://bford.info/cachedir/\n";

void make_folder(const Cache& cache, const fs::path& folder) {
    if (cache.folder().make_folders(folder) != 0) {
        throw_cache_error(cache, folder, errno);
    }
}

// huggingface_hub and other processes write it, too; the first one does.
void write_cache_tag(const Cache& cache) {
    const fs::path path = cache.root() / "CACHEDIR.TAG";
    const base::UniqueFd fd = cache.folder().open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (fd && ::write(fd.get(), cache_tag.data(), cache_tag.size()) < 0) {
        cache.folder().unlink(path);
    }
}

// A relative link from snapshots/<commit>/<path> to blobs/<etag>.
std::string link_target(const TreeFile& file) {
    std::string target = "../../";
    for (auto depth = std::count(file.path.begin(), file.path.end(), '/'); depth > 0; --depth) {
        target += "../";
    }
    return target + "blobs/" + file.etag();
}

bool has_no_links(int reason) {
    return reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS || reason == EMLINK ||
           reason == EXDEV || reason == EINVAL;
}

// A temporary name for a future file of the snapshot: among the blobs, so that a kill leaves no
// partial file in a snapshot, and with a suffix that gets cleaned up.
fs::path temporary_beside(const fs::path& blob) {
    return blob.string() + "." + random_hex8() + ".incomplete";
}

void copy_contents(const Cache& cache, const fs::path& from, const fs::path& to) {
    const base::UniqueFd out = cache.folder().open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (!out) {
        throw_cache_error(cache, to, errno);
    }
    base::stream_file(cache.folder().open(from, O_RDONLY | O_NONBLOCK), from, "blob",
                      [&](std::string_view bytes) {
                          if (const int error = base::write_all(out.get(), bytes); error != 0) {
                              throw_cache_error(cache, to, error);
                          }
                      });
}

// For file systems without symbolic links: a hard link costs no space, and a copy works everywhere.
// The blob stays for other paths, commits and processes.
void place_copy(const Cache& cache, const fs::path& blob, const fs::path& path) {
    const base::Folder& folder = cache.folder();
    const fs::path temporary = temporary_beside(blob);
    const fs::path bytes = bytes_of_blob(cache, blob);
    if (folder.link(bytes, temporary) != 0) {
        if (!has_no_links(errno)) {
            throw_cache_error(cache, path, errno);
        }
        try {
            copy_contents(cache, bytes, temporary);
        } catch (const Error&) {
            folder.unlink(temporary);
            throw;
        }
    }
    const int reason = folder.rename(temporary, path) == 0 ? 0 : errno;
    folder.unlink(temporary);  // two names of one file are left as they are by rename
    if (reason != 0) {
        throw_cache_error(cache, path, reason);
    }
}

// False: this file system has no symbolic links.
bool place_link(const Cache& cache, const fs::path& blob, const std::string& target,
                const fs::path& path) {
    const base::Folder& folder = cache.folder();
    for (int attempt = 0;; ++attempt) {
        if (folder.symlink(target, path) == 0) {
            return true;
        }
        if (errno == ENOENT && attempt == 0) {
            make_folder(cache, path.parent_path());
        } else if (errno == EEXIST) {
            break;
        } else if (has_no_links(errno)) {
            return false;
        } else {
            throw_cache_error(cache, path, errno);
        }
    }
    if (folder.read_link(path) == target) {
        return true;
    }
    const fs::path temporary = temporary_beside(blob);
    if (folder.symlink(target, temporary) != 0 || folder.rename(temporary, path) != 0) {
        const int reason = errno;
        folder.unlink(temporary);
        throw_cache_error(cache, path, reason);
    }
    return true;
}

}  // namespace

void prepare_repository(const Cache& cache, std::string_view repo_id) {
    const fs::path repository = cache.repository(repo_id);
    for (const char* name : {"blobs", "refs", "snapshots"}) {
        make_folder(cache, repository / name);
    }
    make_folder(cache, cache.root() / ".locks" / repository_folder(repo_id));
    const auto blobs = cache.folder().open(repository / "blobs", O_PATH | O_DIRECTORY);
    if (!blobs || ::faccessat(blobs.get(), ".", W_OK | X_OK, 0) != 0) {
        throw_cache_error(cache, repository / "blobs", errno);
    }
    write_cache_tag(cache);
}

bool has_blob(const Cache& cache, std::string_view repo_id, std::string_view etag,
              std::uint64_t size) {
    struct stat info{};
    return stat_blob(cache, cache.blob(repo_id, etag), info) &&
           static_cast<std::uint64_t>(info.st_size) == size;
}

bool link_into_snapshot(const Cache& cache, std::string_view repo_id, std::string_view commit,
                        const TreeFile& file) {
    const fs::path path = cache.file(repo_id, commit, file.path);
    const fs::path blob = cache.blob(repo_id, file.etag());
    if (!has_blob(cache, repo_id, file.etag(), file.size)) {
        return false;
    }
    if (cache.options().symlinks && place_link(cache, blob, link_target(file), path)) {
        return true;
    }
    make_folder(cache, path.parent_path());
    place_copy(cache, blob, path);
    return true;
}

void write_ref(const Cache& cache, std::string_view repo_id, std::string_view ref,
               std::string_view commit) {
    const fs::path path = cache.ref_file(repo_id, ref);
    if (!is_commit(commit)) {
        throw Error(ErrorCode::malformed, {.what = "a ref of the cache must name a commit",
                                           .where = base::display_path(path),
                                           .why = "it has 40 or 64 hex digits",
                                           .hint = ""});
    }
    struct stat info{};
    const base::Folder& folder = cache.folder();
    if (folder.lstat(path, info) == 0 && S_ISREG(info.st_mode) &&
        static_cast<std::size_t>(info.st_size) == commit.size() &&
        base::read_file(folder.open(path, O_RDONLY | O_NONBLOCK), path, "ref in the cache",
                        commit.size()) == commit) {
        return;
    }
    make_folder(cache, path.parent_path());
    if (folder.write_file(path, commit) != 0) {
        throw_cache_error(cache, path, errno);
    }
}

}  // namespace twinkle::cache
