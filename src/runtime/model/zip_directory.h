#pragma once
// The list of records at the end of a zip archive, read without unpacking anything: what unpacking
// would take is known before.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct ZipEntry {
    std::string name;
    bool stored = true;        // as it is, not compressed
    std::uint64_t packed = 0;  // bytes in the archive
    std::uint64_t size = 0;    // bytes when it is unpacked
    std::uint64_t header = 0;  // where in the file its own header begins
};

// Nothing: there is no list that is whole. It is looked for where LibTorch's reader looks.
std::optional<std::vector<ZipEntry>> zip_directory(const std::filesystem::path& file);

// A record's name as LibTorch's reader compares names: it ignores case.
std::string folded_name(std::string name);

// Why an archive of PyTorch is not to be unpacked: what is not code is stored as it is, so that it
// cannot be larger than the file. Nothing: it can be.
std::optional<std::string> invalid_sizes(const std::vector<ZipEntry>& entries,
                                         std::uint64_t file_size);

}  // namespace twinkle::runtime
