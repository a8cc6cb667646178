#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/io_error.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "twinkle/error.h"

namespace fs = std::filesystem;

namespace twinkle::base {
namespace {

// Opens without waiting on a pipe that nobody writes to.
UniqueFd open_file(const fs::path& path) {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

struct stat facts_of(const UniqueFd& fd, const fs::path& path, std::string_view what) {
    struct stat info{};
    if (!fd || ::fstat(fd.get(), &info) != 0) {
        throw_read_error(what, path, errno);
    }
    if (!S_ISREG(info.st_mode)) {
        throw Error(ErrorCode::malformed,
                    {.what = "cannot read the " + std::string(what),
                     .where = display_path(path),
                     .why = S_ISDIR(info.st_mode) ? "it is a folder" : "it is not a regular file",
                     .hint = ""});
    }
    return info;
}

std::size_t read_some(int fd, char* buffer, std::size_t size, const fs::path& path,
                      std::string_view what) {
    for (;;) {
        const ssize_t got = ::read(fd, buffer, size);
        if (got >= 0) {
            return static_cast<std::size_t>(got);
        }
        if (errno != EINTR) {
            throw_read_error(what, path, errno);
        }
    }
}

bool is_below(const fs::path& path, const fs::path& folder) {
    const auto [in_folder, in_path] =
        std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    return in_folder == folder.end() && in_path != path.end();
}

// In a Hub cache <cache>/<repository>/snapshots/<commit>/… the files are links into
// <repository>/blobs or, in the newer layout, on from there into <cache>/blobs.
std::vector<fs::path> blob_folders(const fs::path& root) {
    for (fs::path part = root; part.has_relative_path(); part = part.parent_path()) {
        if (part.filename() == "snapshots") {
            const fs::path repository = part.parent_path();
            return {repository / "blobs", repository.parent_path() / "blobs"};
        }
    }
    return {};
}

[[noreturn]] void refuse_link(const fs::path& link, std::string why) {
    throw Error(ErrorCode::refused, {.what = "refused to follow a symbolic link",
                                     .where = display_path(link),
                                     .why = std::move(why),
                                     .hint = "replace the link by a copy of the file"});
}

// Whether the link is to be listed as a file.
bool follow_link(const fs::path& link, const fs::path& root, const std::vector<fs::path>& blobs) {
    std::error_code error;
    const fs::path target = fs::canonical(link, error);
    if (error) {
        refuse_link(link, "its target cannot be found");
    }
    if (fs::is_directory(target, error)) {
        return false;
    }
    const auto holds = [&](const fs::path& folder) { return is_below(target, folder); };
    if (!holds(root) && std::none_of(blobs.begin(), blobs.end(), holds)) {
        refuse_link(link, "it leaves the folder " + display_path(root));
    }
    return fs::is_regular_file(target, error);
}

}  // namespace

std::string read_file(const fs::path& path, std::string_view what, std::uint64_t limit) {
    return read_file(open_file(path), path, what, limit);
}

std::string read_file(UniqueFd fd, const fs::path& path, std::string_view what,
                      std::uint64_t limit) {
    const struct stat info = facts_of(fd, path, what);
    std::string contents;
    const auto refuse_size = [&] {
        throw Error(ErrorCode::malformed, {.what = "the " + std::string(what) + " is too large",
                                           .where = display_path(path),
                                           .why = "it has more than " + std::to_string(limit) +
                                                  " bytes, the limit for such a file",
                                           .hint = ""});
    };
    if (static_cast<std::uint64_t>(info.st_size) > limit) {
        refuse_size();
    }
    // One byte more than fstat said, so that the same read reaches the end of the file.
    contents.resize(static_cast<std::size_t>(info.st_size) + 1);
    std::size_t used = 0;
    while (const std::size_t got =
               read_some(fd.get(), contents.data() + used, contents.size() - used, path, what)) {
        used += got;
        if (used > limit) {
            refuse_size();
        }
        if (used == contents.size()) {
            contents.resize(contents.size() * 2);
        }
    }
    contents.resize(used);
    return contents;
}

std::uint64_t stream_file(const fs::path& path, std::string_view what,
                          const std::function<void(std::string_view)>& sink) {
    return stream_file(open_file(path), path, what, sink);
}

std::uint64_t stream_file(UniqueFd fd, const fs::path& path, std::string_view what,
                          const std::function<void(std::string_view)>& sink) {
    const struct stat info = facts_of(fd, path, what);
    const std::size_t size =
        std::clamp<std::size_t>(static_cast<std::size_t>(info.st_size) + 1, 4096, 1u << 18);
    const auto buffer = std::make_unique<char[]>(size);
    std::uint64_t total = 0;
    while (const std::size_t got = read_some(fd.get(), buffer.get(), size, path, what)) {
        total += got;
        sink({buffer.get(), got});
    }
    return total;
}

fs::path absolute_path(const fs::path& path) {
    return fs::absolute(path).lexically_normal();
}

std::string display_path(const fs::path& path) {
    std::error_code error;
    const std::string plain = path.lexically_normal().string();
    if (path.is_relative()) {
        return printable(plain);
    }
    const fs::path here = fs::current_path(error);
    if (error) {
        return printable(plain);
    }
    const std::string relative = path.lexically_relative(here).string();
    return printable(!relative.empty() && relative.size() < plain.size() ? relative : plain);
}

namespace {

[[noreturn]] void refuse_other_kind(const fs::path& path, const fs::file_status& status) {
    throw Error(ErrorCode::malformed, {.what = "a folder of files holds something else",
                                       .where = display_path(path),
                                       .why = fs::is_fifo(status)     ? "it is a pipe"
                                              : fs::is_socket(status) ? "it is a socket"
                                                                      : "it is a device",
                                       .hint = "take it away, or put a file in its place"});
}

}  // namespace

std::vector<std::string> list_files(const fs::path& root) {
    std::error_code error;
    const fs::path real = fs::canonical(root, error);
    if (error) {
        throw_read_error("folder", root, error.value());
    }
    const auto blobs = blob_folders(real);
    std::vector<std::string> files;
    fs::recursive_directory_iterator entry(real, error), end;
    if (error) {
        throw_read_error("folder", root, error.value());
    }
    while (entry != end) {
        const auto status = entry->symlink_status(error);
        const bool listed = fs::is_symlink(status) ? follow_link(entry->path(), real, blobs)
                                                   : fs::is_regular_file(status);
        if (listed) {
            files.push_back(entry->path().lexically_relative(real).generic_string());
        } else if (fs::is_other(status)) {
            refuse_other_kind(entry->path(), status);
        }
        entry.increment(error);
        if (error) {
            throw_read_error("folder", root, error.value());
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace twinkle::base
