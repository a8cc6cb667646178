#pragma once
// The list of records at the end of a zip archive, read without unpacking anything: it says what
// unpacking would take.

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twinkle::archive {

struct ZipEntry {
    std::string name;
    bool stored = true;        // not compressed
    std::uint64_t packed = 0;  // bytes in the archive
    std::uint64_t size = 0;    // bytes when it is unpacked
    std::uint64_t header = 0;  // where in the file its own header begins
};

// Nothing: there is no complete list. Looks for it where LibTorch's reader does.
std::optional<std::vector<ZipEntry>> zip_directory(const std::filesystem::path& file);
// The same for an archive of this many bytes elsewhere.
std::optional<std::vector<ZipEntry>> zip_directory(std::istream& in, std::uint64_t size);

// Normalizes a record's name as LibTorch's reader does for comparison: it ignores case.
std::string folded_name(std::string name);

// Why an archive of PyTorch must not be unpacked. Records that are not code are stored
// uncompressed, so that they cannot be larger than the file. Nothing: it can be.
std::optional<std::string> invalid_sizes(const std::vector<ZipEntry>& entries,
                                         std::uint64_t file_size);

}  // namespace twinkle::archive
