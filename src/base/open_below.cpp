#include "base/open_below.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace twinkle::base {
namespace {

// A link in the place of a folder gives "not a folder".
UniqueFd open_step(int folder, const std::string& name, int flags, mode_t mode) {
    UniqueFd fd(::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!fd && errno == ENOTDIR) {
        struct stat info{};
        const bool link = ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                          S_ISLNK(info.st_mode);
        errno = link ? ELOOP : ENOTDIR;
    }
    return fd;
}

UniqueFd open_step_by_step(int folder, const std::string& path, int flags, mode_t mode) {
    UniqueFd reached;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t end = path.find('/', begin);
        const std::string name = path.substr(begin, end - begin);
        const int from = reached ? reached.get() : folder;
        if (name.empty() || name == "..") {
            errno = EINVAL;
            return {};
        }
        if (end == std::string::npos) {
            UniqueFd fd = open_step(from, name, flags, mode);
            const int reason = errno;
            reached.reset();
            errno = reason;
            return fd;
        }
        reached = open_step(from, name, O_PATH | O_DIRECTORY, 0);
        if (!reached) {
            return {};
        }
        begin = end + 1;
    }
}

}  // namespace

UniqueFd open_below(int folder, const std::string& path, int flags, mode_t mode) {
    open_how how{};
    how.flags = static_cast<unsigned>(flags | O_CLOEXEC);
    how.mode = mode;  // refused where nothing is created
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    long fd = -1;
    do {
        fd = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof(how));
    } while (fd < 0 && errno == EINTR);
    // A container's filter may answer with either; a genuine EPERM comes back from the steps.
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        return open_step_by_step(folder, path, flags, mode);
    }
    return UniqueFd(static_cast<int>(fd));
}

}  // namespace twinkle::base
