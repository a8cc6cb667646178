#include "cache/blob_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.h"
#include "base/io_error.h"
#include "base/unique_fd.h"
#include "base/write_all.h"
#include "cache/random_name.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::cache {
namespace {

constexpr std::string_view cache_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of the Hugging Face Hub: backups can leave it out.\n"
    "# https://bford.info/cachedir/\n";

[[noreturn]] void throw_cache_error(const Cache& cache, const fs::path& path, int reason) {
    throw Error(ErrorCode::failed, {.what = "cannot write to the cache",
                                    .where = base::display_path(path),
                                    .why = base::io_reason(reason),
                                    .hint = "the cache is " + base::display_path(cache.root()) +
                                            "; KERNELS_CACHE=FOLDER names another one"});
}

void make_folder(const Cache& cache, const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error && !fs::is_directory(folder)) {
        throw_cache_error(cache, folder, error.value());
    }
}

// Python tools and other processes write it too: whoever is first.
void write_cache_tag(const Cache& cache) {
    const fs::path path = cache.root() / "CACHEDIR.TAG";
    const base::UniqueFd fd(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (fd && ::write(fd.get(), cache_tag.data(), cache_tag.size()) < 0) {
        ::unlink(path.c_str());
    }
}

// From snapshots/<commit>/<path> to blobs/<etag>.
std::string link_target(const TreeFile& file) {
    std::string target = "../../";
    for (auto depth = std::count(file.path.begin(), file.path.end(), '/'); depth > 0; --depth) {
        target += "../";
    }
    return target + "blobs/" + file.etag();
}

bool points_to(const fs::path& link, const std::string& target) {
    std::array<char, 512> found{};
    const ssize_t size = ::readlink(link.c_str(), found.data(), found.size());
    return size >= 0 && std::string_view(found.data(), static_cast<std::size_t>(size)) == target;
}

bool has_no_links(int reason) {
    return reason == EPERM || reason == EOPNOTSUPP || reason == ENOSYS || reason == EMLINK ||
           reason == EXDEV || reason == EINVAL;
}

// A name for something that becomes a file of the snapshot: among the blobs, so that a kill leaves
// nothing half-made in a snapshot, and with a name that is cleaned up.
fs::path temporary_beside(const fs::path& blob) {
    return blob.string() + "." + random_hex8() + ".incomplete";
}

void copy_contents(const fs::path& from, const fs::path& to) {
    const base::UniqueFd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!out) {
        base::throw_write_error(to, errno);
    }
    base::stream_file(from, "blob", [&](std::string_view bytes) {
        if (const int error = base::write_all(out.get(), bytes); error != 0) {
            base::throw_write_error(to, error);
        }
    });
}

// Without symbolic links a hard link costs no space, and a copy works everywhere. The blob stays:
// other paths, commits and processes find it there.
void place_copy(const Cache& cache, const fs::path& blob, const fs::path& path) {
    const fs::path temporary = temporary_beside(blob);
    if (::linkat(AT_FDCWD, blob.c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
        if (!has_no_links(errno)) {
            throw_cache_error(cache, path, errno);
        }
        try {
            copy_contents(blob, temporary);
        } catch (const Error&) {
            ::unlink(temporary.c_str());
            throw;
        }
    }
    const int reason = ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
    ::unlink(temporary.c_str());  // two names of one file are left as they are by rename
    if (reason != 0) {
        throw_cache_error(cache, path, reason);
    }
}

// False: this file system has no symbolic links.
bool place_link(const Cache& cache, const fs::path& blob, const std::string& target,
                const fs::path& path) {
    for (int attempt = 0;; ++attempt) {
        if (::symlink(target.c_str(), path.c_str()) == 0) {
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
    if (points_to(path, target)) {
        return true;
    }
    const fs::path temporary = temporary_beside(blob);
    if (::symlink(target.c_str(), temporary.c_str()) != 0 ||
        ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int reason = errno;
        ::unlink(temporary.c_str());
        throw_cache_error(cache, path, reason);
    }
    return true;
}

// A new file that has a name only once its contents are there, so that a kill leaves nothing
// behind. False: there is one of that name, or the file system has no files without a name.
bool create_whole(const fs::path& path, std::string_view contents) {
    const base::UniqueFd fd(
        ::open(path.parent_path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    if (!fd || base::write_all(fd.get(), contents) != 0) {
        return false;
    }
    const std::string open = "/proc/self/fd/" + std::to_string(fd.get());
    return ::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

void prepare_repository(const Cache& cache, std::string_view repo_id) {
    const fs::path repository = cache.repository(repo_id);
    for (const char* name : {"blobs", "refs", "snapshots"}) {
        make_folder(cache, repository / name);
    }
    make_folder(cache, cache.root() / ".locks" / repository_folder(repo_id));
    if (::access((repository / "blobs").c_str(), W_OK | X_OK) != 0) {
        throw_cache_error(cache, repository / "blobs", errno);
    }
    write_cache_tag(cache);
}

bool has_blob(const Cache& cache, std::string_view repo_id, std::string_view etag,
              std::uint64_t size) {
    struct stat info{};
    return ::stat(cache.blob(repo_id, etag).c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
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
    std::error_code error;
    if (fs::file_size(path, error) == commit.size() && !error &&
        base::read_file(path, "ref in the cache") == commit) {
        return;
    }
    make_folder(cache, path.parent_path());
    if (!create_whole(path, commit)) {
        base::write_file_atomically(path, commit);
    }
}

void mark_missing(const Cache& cache, std::string_view repo_id, std::string_view commit,
                  std::string_view path) {
    const fs::path marker = cache.missing_file(repo_id, commit, path);
    std::error_code error;
    fs::create_directories(marker.parent_path(), error);
    const base::UniqueFd fd(
        ::open(marker.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
}

}  // namespace twinkle::cache
