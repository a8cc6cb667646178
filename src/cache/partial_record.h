#pragma once
// The progress of a partial file's segments, recorded behind its last byte.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::cache {

struct PartialRecord {
    std::uint64_t segment_size = 0;
    std::vector<std::uint64_t> written;  // of each segment
};

std::string record_bytes(const PartialRecord& record);
// The record's entry for one segment, and its offset in the file.
std::string record_entry(std::uint64_t written);
std::uint64_t record_offset(std::uint64_t file_size, std::size_t segment);

// None: there is no valid record for a file of that size.
std::optional<PartialRecord> read_record(int fd, std::uint64_t file_size, std::uint64_t length);

}  // namespace twinkle::cache
