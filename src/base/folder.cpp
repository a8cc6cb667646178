#include "base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <random>

#include "base/open_below.h"
#include "base/write_all.h"

namespace fs = std::filesystem;

namespace twinkle::base {
namespace {

// The path relative to the root: "a/b"; "." for the root itself. None: the path is not below it.
std::optional<std::string> steps_to(const fs::path& path, const fs::path& root) {
    std::string_view rest = path.native();
    const std::string_view start = root.native();
    if (!rest.starts_with(start)) {
        return std::nullopt;
    }
    rest.remove_prefix(start.size());
    const bool at_end = start.empty() || start.back() == '/' || rest.empty();
    if (!at_end && rest.front() != '/') {
        return std::nullopt;
    }
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    return rest.empty() ? "." : std::string(rest);
}

UniqueFd open_root(const fs::path& root) {
    return UniqueFd(::open(root.empty() ? "." : root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// An open folder and a name in it, the arguments of an …at() call.
struct Place {
    UniqueFd folder;
    std::string name;
};

Place place_of(const fs::path& path, const fs::path& root) {
    const auto steps = steps_to(path, root);
    if (!steps || *steps == ".") {
        errno = EINVAL;
        return {};
    }
    UniqueFd top = open_root(root);
    const auto slash = steps->rfind('/');
    if (!top || slash == std::string::npos) {
        return {std::move(top), *steps};
    }
    return {open_below(top.get(), steps->substr(0, slash), O_PATH | O_DIRECTORY | O_CLOEXEC, 0),
            steps->substr(slash + 1)};
}

// Preserves the call's errno when descriptors are closed.
template <typename Call>
int at_place(const fs::path& path, const fs::path& root, Call&& call) {
    int result = -1;
    int reason = 0;
    {
        const Place place = place_of(path, root);
        result = place.folder ? call(place.folder.get(), place.name.c_str()) : -1;
        reason = errno;
    }
    errno = reason;
    return result;
}

fs::path random_name_beside(const fs::path& path) {
    static constexpr char digits[] = "0123456789abcdef";
    std::random_device device;
    std::string name = "." + path.filename().string().substr(0, 100) + ".";
    for (int i = 0; i < 12; ++i) {
        name += digits[device() % 16];
    }
    return path.parent_path() / (name + ".tmp");
}

mode_t kind_of(int folder, const dirent& entry) {
    if (entry.d_type != DT_UNKNOWN) {
        return DTTOIF(entry.d_type);
    }
    struct stat info{};
    return ::fstatat(folder, entry.d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_mode & S_IFMT
                                                                            : 0;
}

}  // namespace

UniqueFd Folder::open(const fs::path& path, int flags, mode_t mode) const {
    const auto steps = steps_to(path, root_);
    const UniqueFd top = steps ? open_root(root_) : UniqueFd();
    if (!top) {
        errno = steps ? errno : EINVAL;
        return {};
    }
    return open_below(top.get(), *steps, flags | O_CLOEXEC, mode);
}

int Folder::lstat(const fs::path& path, struct stat& info) const {
    return at_place(path, root_, [&](int folder, const char* name) {
        return ::fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW);
    });
}

int Folder::unlink(const fs::path& path) const {
    return at_place(path, root_,
                    [](int folder, const char* name) { return ::unlinkat(folder, name, 0); });
}

int Folder::rmdir(const fs::path& path) const {
    return at_place(path, root_, [](int folder, const char* name) {
        return ::unlinkat(folder, name, AT_REMOVEDIR);
    });
}

int Folder::rename(const fs::path& from, const fs::path& to) const {
    return at_place(from, root_, [&](int from_folder, const char* from_name) {
        return at_place(to, root_, [&](int to_folder, const char* to_name) {
            return ::renameat(from_folder, from_name, to_folder, to_name);
        });
    });
}

int Folder::link(const fs::path& from, const fs::path& to) const {
    return at_place(from, root_, [&](int from_folder, const char* from_name) {
        return at_place(to, root_, [&](int to_folder, const char* to_name) {
            return ::linkat(from_folder, from_name, to_folder, to_name, 0);
        });
    });
}

int Folder::symlink(const std::string& target, const fs::path& path) const {
    return at_place(path, root_, [&](int folder, const char* name) {
        return ::symlinkat(target.c_str(), folder, name);
    });
}

int Folder::touch(const fs::path& path) const {
    return at_place(path, root_, [](int folder, const char* name) {
        return ::utimensat(folder, name, nullptr, AT_SYMLINK_NOFOLLOW);
    });
}

int Folder::link_open(int file, const fs::path& path) const {
    const std::string open = "/proc/self/fd/" + std::to_string(file);
    return at_place(path, root_, [&](int folder, const char* name) {
        return ::linkat(AT_FDCWD, open.c_str(), folder, name, AT_SYMLINK_FOLLOW);
    });
}

int Folder::make_folders(const fs::path& path) const {
    if (is_folder(path)) {
        return 0;
    }
    std::error_code error;
    fs::create_directories(root_, error);
    const auto steps = steps_to(path, root_);
    UniqueFd folder = open_root(root_);
    if (!steps || !folder) {
        errno = !steps ? EINVAL : error ? error.value() : errno;
        return -1;
    }
    for (const fs::path& step : fs::path(*steps)) {
        if (::mkdirat(folder.get(), step.c_str(), 0777) != 0 && errno != EEXIST) {
            return -1;
        }
        folder = open_below(folder.get(), step.native(), O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        if (!folder) {
            return -1;
        }
    }
    return 0;
}

int Folder::remove_all(const fs::path& path) const {
    for (const Entry& entry : entries(path)) {
        const int done = S_ISDIR(entry.kind) ? remove_all(entry.path) : unlink(entry.path);
        if (done != 0 && errno != ENOENT) {
            return -1;
        }
    }
    return rmdir(path) == 0 || errno == ENOENT ? 0 : -1;
}

int Folder::replace(const fs::path& temporary, const fs::path& path) const {
    if (rename(temporary, path) == 0) {
        return 0;
    }
    const int reason = errno;
    unlink(temporary);
    errno = reason;
    return -1;
}

// Uses a nameless file until it is complete, if the system has such: a kill leaves nothing behind.
int Folder::write_file(const fs::path& path, std::string_view contents) const {
    const fs::path temporary = random_name_beside(path);
    const UniqueFd nameless = open(path.parent_path(), O_TMPFILE | O_WRONLY, 0666);
    if (nameless && write_all(nameless.get(), contents) == 0) {
        if (link_open(nameless.get(), path) == 0) {
            return 0;  // there was no such file
        }
        if (link_open(nameless.get(), temporary) == 0) {
            return replace(temporary, path);
        }
    }
    const UniqueFd file = open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (!file) {
        return -1;
    }
    if (const int reason = write_all(file.get(), contents); reason != 0) {
        unlink(temporary);
        errno = reason;
        return -1;
    }
    return replace(temporary, path);
}

bool Folder::is_folder(const fs::path& path) const {
    return bool(open(path, O_PATH | O_DIRECTORY));
}

bool Folder::is_file(const fs::path& path) const {
    struct stat info{};
    return lstat(path, info) == 0 && S_ISREG(info.st_mode);
}

std::optional<std::string> Folder::read_link(const fs::path& path) const {
    std::array<char, PATH_MAX> target{};
    const int size = at_place(path, root_, [&](int folder, const char* name) {
        return static_cast<int>(::readlinkat(folder, name, target.data(), target.size()));
    });
    return size >= 0 ? std::optional(std::string(target.data(), static_cast<std::size_t>(size)))
                     : std::nullopt;
}

std::vector<Folder::Entry> Folder::entries(const fs::path& path) const {
    std::vector<Entry> found;
    UniqueFd folder = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    const std::unique_ptr<DIR, int (*)(DIR*)> list(folder ? ::fdopendir(folder.get()) : nullptr,
                                                   ::closedir);
    if (!list) {
        return found;
    }
    const int descriptor = folder.release();  // the list closes it
    while (const dirent* entry = ::readdir(list.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            found.push_back({path / name, kind_of(descriptor, *entry)});
        }
    }
    return found;
}

void Folder::walk(const fs::path& path, const std::function<void(const Entry&)>& each) const {
    for (const Entry& entry : entries(path)) {
        if (S_ISDIR(entry.kind)) {
            walk(entry.path, each);
        } else {
            each(entry);
        }
    }
}

std::optional<fs::path> Folder::find_link(const fs::path& path) const {
    const auto steps = steps_to(path, root_);
    fs::path step = root_;
    for (const fs::path& name : fs::path(steps.value_or(""))) {
        step /= name;
        if (read_link(step)) {
            return step;
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::base
