#include "base/stale_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <random>

namespace twinkle::base {

// Moved aside, looked at once more, and put back if it was another one.
int unlink_same(const Folder& folder, const std::filesystem::path& path,
                const struct stat& judged) {
    const std::filesystem::path aside =
        path.string() + fmt::format(".{:08x}", std::random_device()());
    if (folder.rename(path, aside) != 0) {
        return errno == ENOENT ? 0 : -1;
    }
    struct stat taken{};
    const bool other = folder.lstat(aside, taken) == 0 && taken.st_ino != judged.st_ino;
    if (other && folder.link(aside, path) != 0 && errno != EEXIST) {
        return folder.rename(aside, path);
    }
    return folder.unlink(aside);
}

}  // namespace twinkle::base
