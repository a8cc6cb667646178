#pragma once
// Bytes that are read on demand. Nothing is mapped and nothing read twice into memory: a library of
// gigabytes costs only the parts that are looked at.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/unique_fd.h"

namespace twinkle::binary {

class ByteSource {
public:
    virtual ~ByteSource() = default;

    virtual std::uint64_t size() const = 0;
    // Returns how many bytes there were; fewer only at the end of the file.
    virtual std::size_t read(std::uint64_t offset, char* to, std::size_t size) const = 0;

    // None if the file ends before.
    template <class T>
    std::optional<T> get(std::uint64_t offset) const {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        if (read(offset, reinterpret_cast<char*>(&value), sizeof value) != sizeof value) {
            return std::nullopt;
        }
        return value;
    }
    // The available part of [offset, offset + size), at most `limit` bytes.
    std::string bytes(std::uint64_t offset, std::uint64_t size, std::uint64_t limit) const;
};

// Throws Error(not_found | failed). Follows links; a path that is no regular file has no bytes.
class FileSource : public ByteSource {
public:
    explicit FileSource(const std::filesystem::path& path);
    std::uint64_t size() const override { return size_; }
    std::size_t read(std::uint64_t offset, char* to, std::size_t size) const override;

private:
    base::UniqueFd fd_;
    std::uint64_t size_ = 0;
};

class MemorySource : public ByteSource {
public:
    explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
    std::uint64_t size() const override { return bytes_.size(); }
    std::size_t read(std::uint64_t offset, char* to, std::size_t size) const override;

private:
    std::string_view bytes_;
};

}  // namespace twinkle::binary
