#include "cache/partial_record.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace twinkle::cache {
namespace {

// The magic, the size of a segment and one number for each segment, little endian.
constexpr std::string_view magic = "twinkle1";
constexpr std::size_t number_size = 8;
constexpr std::size_t header_size = 2 * number_size;
constexpr std::uint64_t most_segments = 1u << 20;

std::uint64_t number_at(std::string_view bytes, std::size_t offset) {
    std::uint64_t number = 0;
    for (std::size_t i = number_size; i-- > 0;) {
        number = number << 8 | static_cast<unsigned char>(bytes[offset + i]);
    }
    return number;
}

}  // namespace

std::string record_entry(std::uint64_t written) {
    std::string bytes;
    for (std::size_t i = 0; i < number_size; ++i) {
        bytes += static_cast<char>(written >> (8 * i) & 0xff);
    }
    return bytes;
}

std::string record_bytes(const PartialRecord& record) {
    std::string bytes(magic);
    bytes += record_entry(record.segment_size);
    for (const std::uint64_t written : record.written) {
        bytes += record_entry(written);
    }
    return bytes;
}

std::uint64_t record_offset(std::uint64_t file_size, std::size_t segment) {
    return file_size + header_size + segment * number_size;
}

std::optional<PartialRecord> read_record(int fd, std::uint64_t file_size, std::uint64_t length) {
    const std::uint64_t size = length - file_size;
    if (size < header_size + 2 * number_size || size % number_size != 0 ||
        size > header_size + most_segments * number_size) {
        return std::nullopt;
    }
    std::string bytes(size, '\0');
    if (::pread(fd, bytes.data(), size, static_cast<off_t>(file_size)) !=
            static_cast<ssize_t>(size) ||
        bytes.substr(0, magic.size()) != magic) {
        return std::nullopt;
    }
    PartialRecord record{number_at(bytes, number_size), {}};
    const std::uint64_t count = size / number_size - 2;
    if (record.segment_size == 0 || record.segment_size > file_size ||
        (file_size - 1) / record.segment_size + 1 != count) {
        return std::nullopt;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t begin = i * record.segment_size;
        const std::uint64_t longest = std::min(record.segment_size, file_size - begin);
        record.written.push_back(number_at(bytes, header_size + i * number_size));
        if (record.written.back() > longest) {
            return std::nullopt;
        }
    }
    return record;
}

}  // namespace twinkle::cache
