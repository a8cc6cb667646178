#pragma once
// The two hashes that name contents on the Hub: SHA-256 for large (LFS) files, and for all others
// git's blob id, the SHA-1 over "blob <size>\0" and the bytes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/evp.h"
#include "base/unique_fd.h"

namespace twinkle::cache {

enum class HashKind { sha256, git_sha1 };

struct ContentHash {
    HashKind kind = HashKind::git_sha1;
    std::string hex;

    bool operator==(const ContentHash&) const = default;
};

// By length: 64 digits are a SHA-256, 40 a git blob id. So a blob's name implies its hash.
HashKind kind_of_etag(std::string_view etag);

class ContentHasher {
public:
    ContentHasher(HashKind kind, std::uint64_t size);  // the size is part of a git blob id
    void update(std::string_view bytes) { digest_.update(bytes); }
    std::string finish_hex();  // the object is spent afterwards

private:
    base::EvpDigest digest_;
};

std::string hash_bytes(std::string_view bytes, HashKind kind);
// Missing: Error(not_found); unreadable: Error(failed). `each` is called for every piece that was
// read and ends the work by throwing.
std::string hash_file_as(const std::filesystem::path& path, HashKind kind,
                         const std::function<void(std::size_t bytes)>& each = {});
// The same for an open file; `path` is for messages.
std::string hash_open_file(base::UniqueFd file, const std::filesystem::path& path, HashKind kind,
                           const std::function<void(std::size_t bytes)>& each = {});

}  // namespace twinkle::cache
