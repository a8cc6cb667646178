#include "cache/content_hash.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file.h"

namespace twinkle::cache {
namespace {

base::DigestKind digest_of(HashKind kind) {
    return kind == HashKind::sha256 ? base::DigestKind::sha256 : base::DigestKind::sha1;
}

}  // namespace

HashKind kind_of_etag(std::string_view etag) {
    return etag.size() == 64 ? HashKind::sha256 : HashKind::git_sha1;
}

ContentHasher::ContentHasher(HashKind kind, std::uint64_t size) : digest_(digest_of(kind)) {
    if (kind == HashKind::git_sha1) {
        std::string header = "blob " + std::to_string(size);
        header += '\0';
        digest_.update(header);
    }
}

std::string ContentHasher::finish_hex() {
    return base::to_hex(digest_.finish());
}

std::string hash_bytes(std::string_view bytes, HashKind kind) {
    ContentHasher hasher(kind, bytes.size());
    hasher.update(bytes);
    return hasher.finish_hex();
}

std::string hash_file_as(const std::filesystem::path& path, HashKind kind,
                         const std::function<void(std::size_t)>& each) {
    return hash_open_file(base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
                          path, kind, each);
}

std::string hash_open_file(base::UniqueFd file, const std::filesystem::path& path, HashKind kind,
                           const std::function<void(std::size_t)>& each) {
    const int reason = errno;
    struct stat info{};  // if there is no file, stream_file says so
    const bool known = ::fstat(file.get(), &info) == 0;
    ContentHasher hasher(kind, known ? static_cast<std::uint64_t>(info.st_size) : 0);
    errno = reason;
    base::stream_file(std::move(file), path, "file in the cache", [&](std::string_view bytes) {
        hasher.update(bytes);
        if (each) {
            each(bytes.size());
        }
    });
    return hasher.finish_hex();
}

}  // namespace twinkle::cache
