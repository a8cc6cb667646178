#pragma once
// A folder that others may write to, such as a shared cache. No symbolic link below it is followed:
// nothing outside is read, written or removed, whatever anybody puts there at any time. The folder
// itself may be a link, and so may every folder above it.

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace twinkle::base {

// Paths begin with root() and contain no "." or "..". Functions named after system calls return
// what these do: -1, or no descriptor, with errno. ELOOP: a link is in the way (find_link).
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
    // Gives this name to an open file, which may have none yet.
    int link_open(int file, const std::filesystem::path& path) const;

    // Makes the folder and those above it, root included. 0, or -1 with errno.
    int make_folders(const std::filesystem::path& path) const;
    // Removes the folder with its contents; a missing folder is no error. 0, or -1 with errno.
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
    // Empty for a folder that is missing or cannot be read.
    std::vector<Entry> entries(const std::filesystem::path& path) const;
    // Visits everything below the folder, except folders themselves.
    void walk(const std::filesystem::path& path,
              const std::function<void(const Entry& entry)>& each) const;

    // The first component of `path` that is a link, the last included.
    std::optional<std::filesystem::path> find_link(const std::filesystem::path& path) const;

private:
    int replace(const std::filesystem::path& temporary, const std::filesystem::path& path) const;

    std::filesystem::path root_;
};

}  // namespace twinkle::base
