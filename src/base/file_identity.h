#pragma once
// Identifies a file's contents without reading it: device, inode, size, times of the last change of
// its bytes and of its inode. Whoever can write to the disk directly, or set the clock, can deceive
// it.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

namespace twinkle::base {

struct FileIdentity {
    std::string text;                               // equal for a file that has not changed
    std::chrono::system_clock::time_point changed;  // the later of the two times
};

// Follows symbolic links. None: there is no such file.
std::optional<FileIdentity> identity_of(const std::filesystem::path& file);

}  // namespace twinkle::base
