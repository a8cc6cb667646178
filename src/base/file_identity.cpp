#include "base/file_identity.h"

#include <sys/stat.h>

#include <algorithm>

namespace twinkle::base {

std::optional<FileIdentity> identity_of(const std::filesystem::path& file) {
    struct stat facts{};
    if (::stat(file.c_str(), &facts) != 0) {
        return std::nullopt;
    }
    const auto text = [](const timespec& at) {
        return std::to_string(at.tv_sec) + "." + std::to_string(at.tv_nsec);
    };
    const auto time = [](const timespec& at) {
        return std::chrono::system_clock::time_point(
            std::chrono::duration_cast<std::chrono::system_clock::duration>(
                std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec)));
    };
    return FileIdentity{std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino) + ":" +
                            std::to_string(facts.st_size) + ":" + text(facts.st_mtim) + ":" +
                            text(facts.st_ctim),
                        std::max(time(facts.st_mtim), time(facts.st_ctim))};
}

}  // namespace twinkle::base
