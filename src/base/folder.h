#pragma once
// A folder that others may write to, such as a shared cache. No symbolic link below it is followed:
// nothing outside is read, written or removed, whatever somebody puts there and whenever. The
// folder itself may be a link, and so may every folder above it.

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace twinkle::base {

// Paths begin with root() and hold no "." or "..". Functions named after a call of the system
// return as it does: -1, or no descriptor, with errno. ELOOP: a link is in the way (find_link).
class Folder {
public:
    explicit Folder(std::filesystem::path root) : root_(std::move(root)) {}

    const std::filesystem::path& root() const { return root_; }

    UniqueFd open(const std::filesystem::path& path, int flags, mode_t mode = 0) const;
    int lstat(const std::filesystem::path& path, struct stat& info) const;
    int unlink(const std::filesystem::path& path) const;
    int rmdir(const std::filesystem::path& path) const;
    int rename(const std::filesystem::path& from, const std::filesystem::path& to) const;
    int link(const std::filesystem::path& from, const std::filesystem::path& to) const;
    int symlink(const std::string& target, const std::filesystem::path& path) const;
    // Sets the times to now.
    int touch(const std::filesystem::path& path) const;
    // Gives an open file, which may have no name yet, this name.
    int link_open(int file, const std::filesystem::path& path) const;

    // The folder and those above it, the root included. 0, or -1 with errno.
    int make_folders(const std::filesystem::path& path) const;
    // The folder with all that is in it; no such folder is no error. 0, or -1 with errno.
    int remove_all(const std::filesystem::path& path) const;
    // Replaces the file in one step: readers find the old contents or the new ones.
    int write_file(const std::filesystem::path& path, std::string_view contents) const;

    bool is_folder(const std::filesystem::path& path) const;
    bool is_file(const std::filesystem::path& path) const;
    std::optional<std::string> read_link(const std::filesystem::path& path) const;

    struct Entry {
        std::filesystem::path path;
        mode_t kind = 0;  // S_IFREG, S_IFDIR, S_IFLNK, …
    };
    // A folder that is not there or cannot be read has none.
    std::vector<Entry> entries(const std::filesystem::path& path) const;
    // All that is below the folder, but for the folders themselves.
    void walk(const std::filesystem::path& path,
              const std::function<void(const Entry& entry)>& each) const;

    // The first step to `path` that is a link, `path` itself included.
    std::optional<std::filesystem::path> find_link(const std::filesystem::path& path) const;

private:
    int replace(const std::filesystem::path& temporary, const std::filesystem::path& path) const;

    std::filesystem::path root_;
};

}  // namespace twinkle::base
