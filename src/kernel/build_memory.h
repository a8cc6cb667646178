#pragma once
// Builds that this process has read before: whoever asks for the same kernel at every call would
// otherwise have it hashed at every call. What is remembered decides nothing about safety: a
// library is hashed again as it is opened, and refused where it is another.

#include "kernel/build.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace twinkle::kernel {

class BuildMemory {
public:
    // A file that has changed within this time may change once more without its times showing it.
    explicit BuildMemory(std::chrono::milliseconds settled = std::chrono::seconds(2))
        : settled_(settled) {}

    // Does as read_build(), and calls it where any file is another than it was, as far as the file
    // system tells.
    Build read(const std::filesystem::path& folder);

    std::size_t reads() const;  // that were not saved

private:
    struct Known {
        std::vector<std::string> identities;  // of all files, in the order of their names
        std::shared_ptr<const Build> build;
    };
    std::chrono::milliseconds settled_;
    mutable std::mutex mutex_;
    std::map<std::filesystem::path, Known> known_;
    std::size_t reads_ = 0;
};

}  // namespace twinkle::kernel
