#include "binary/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/io_error.h"

namespace twinkle::binary {

std::string ByteSource::bytes(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) const {
    std::string result;
    if (offset >= this->size()) {
        return result;
    }
    result.resize(static_cast<std::size_t>(std::min({size, limit, this->size() - offset})));
    result.resize(read(offset, result.data(), result.size()));
    return result;
}

FileSource::FileSource(const std::filesystem::path& path)
    : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat info{};
    if (!fd_ || ::fstat(fd_.get(), &info) != 0) {
        base::throw_read_error("library", path, errno);
    }
    size_ = S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
}

std::size_t FileSource::read(std::uint64_t offset, char* to, std::size_t size) const {
    if (offset >= size_) {
        return 0;
    }
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, size_ - offset));
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got =
            ::pread(fd_.get(), to + done, size - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        done += static_cast<std::size_t>(got);
    }
    return done;
}

std::size_t MemorySource::read(std::uint64_t offset, char* to, std::size_t size) const {
    if (offset >= bytes_.size()) {
        return 0;
    }
    const auto start = static_cast<std::size_t>(offset);
    const std::size_t got = std::min(size, bytes_.size() - start);
    std::memcpy(to, bytes_.data() + start, got);
    return got;
}

}  // namespace twinkle::binary
