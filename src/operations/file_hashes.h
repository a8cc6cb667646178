#pragma once
// Many files hashed at memory speed: on all cores, each read once for all the hashes it needs.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace twinkle::operations {

struct HashJob {
    std::filesystem::path file;
    bool sha256 = true;
    bool sha512 = false;
    bool git_sha1 = false;
    // Answer.
    bool missing = false;
    std::uint64_t size = 0;
    std::string sha256_bytes, sha512_bytes;  // raw
    std::string git_sha1_hex;
};

// Throws Error(failed) for a file that cannot be read, Error(interrupted) when `stop` is set.
// `progress` gets bytes done and in all; it is called from one thread at a time.
void hash_files(std::vector<HashJob>& jobs, const std::atomic<bool>& stop,
                const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace twinkle::operations
