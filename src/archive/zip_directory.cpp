#include "archive/zip_directory.h"

#include "archive/little_endian.h"
#include "base/quantity.h"
#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace twinkle::archive {

namespace {

constexpr std::uint64_t end_size = 22;
constexpr std::uint64_t longest_comment = 65535;
constexpr std::uint64_t locator_size = 20;
constexpr std::uint64_t zip64_end_size = 56;
constexpr std::uint64_t largest_directory = 512u << 20;
constexpr std::uint64_t in_zip64 = 0xffffffff;

// LibTorch lists names up to this length only.
constexpr std::size_t longest_name = 500;
constexpr std::uint64_t most_code = 256u << 20;
constexpr std::uint64_t most_compressed = 64u << 20;

std::string bytes_at(std::istream& in, std::uint64_t offset, std::uint64_t size) {
    std::string bytes(size, '\0');
    in.clear();
    in.seekg(static_cast<std::streamoff>(offset));
    in.read(bytes.data(), static_cast<std::streamsize>(size));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    return bytes;
}

struct Place {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

// If there is an end record of the larger format, it counts instead of the small one.
std::optional<Place> large_directory(std::istream& in, std::uint64_t end, std::uint64_t size) {
    if (end < locator_size + zip64_end_size) {
        return std::nullopt;
    }
    const std::string locator = bytes_at(in, end - locator_size, locator_size);
    const auto at = little_endian<std::uint64_t>(locator, 8);
    if (!locator.starts_with("PK\x06\x07") || size < zip64_end_size || at > size - zip64_end_size) {
        return std::nullopt;
    }
    const std::string record = bytes_at(in, at, zip64_end_size);
    if (!record.starts_with("PK\x06\x06")) {
        return std::nullopt;
    }
    return Place{little_endian<std::uint64_t>(record, 48),
                 little_endian<std::uint64_t>(record, 40)};
}

std::optional<Place> directory_place(std::istream& in, std::uint64_t size) {
    const std::uint64_t tail_size = std::min(size, end_size + longest_comment);
    const std::string tail = bytes_at(in, size - tail_size, tail_size);
    if (tail.size() < end_size) {
        return std::nullopt;
    }
    const auto end = tail.rfind("PK\x05\x06", tail.size() - end_size);
    if (end == std::string::npos) {
        return std::nullopt;
    }
    if (const auto large = large_directory(in, size - tail_size + end, size)) {
        return large;
    }
    return Place{little_endian<std::uint32_t>(tail, end + 16),
                 little_endian<std::uint32_t>(tail, end + 12)};
}

// Extra field 1 has the numbers that do not fit into 32 bits, in this order.
void read_large_numbers(std::string_view extra, ZipEntry& entry) {
    while (extra.size() >= 4) {
        const auto id = little_endian<std::uint16_t>(extra, 0);
        const std::size_t size = little_endian<std::uint16_t>(extra, 2);
        extra.remove_prefix(4);
        if (id == 1) {
            std::size_t at = 0;
            for (std::uint64_t* field : {&entry.size, &entry.packed, &entry.header}) {
                if (*field == in_zip64) {
                    *field = little_endian<std::uint64_t>(extra.substr(0, size), at);
                    at += 8;
                }
            }
            return;
        }
        extra.remove_prefix(std::min(size, extra.size()));
    }
}

// PyTorch compresses saved code and its origins only. Its reader ignores case.
bool is_code(const std::string& name) {
    return folded_name(name.substr(std::min(name.find('/'), name.size()))).starts_with("/code/");
}

}  // namespace

std::string folded_name(std::string name) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return name;
}

std::optional<std::vector<ZipEntry>> zip_directory(const std::filesystem::path& file) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(file, error);
    std::ifstream in(file, std::ios::binary);
    return error || !in ? std::nullopt : zip_directory(in, size);
}

std::optional<std::vector<ZipEntry>> zip_directory(std::istream& in, std::uint64_t size) {
    const auto place = directory_place(in, size);
    if (!place || place->size > std::min(size, largest_directory) ||
        place->offset > size - place->size) {
        return std::nullopt;
    }
    const std::string directory = bytes_at(in, place->offset, place->size);
    std::vector<ZipEntry> entries;
    for (std::string_view rest = directory; rest.starts_with("PK\x01\x02");) {
        const std::size_t name = little_endian<std::uint16_t>(rest, 28);
        const std::size_t extra = little_endian<std::uint16_t>(rest, 30);
        const std::size_t comment = little_endian<std::uint16_t>(rest, 32);
        if (46 + name + extra + comment > rest.size()) {
            return std::nullopt;
        }
        ZipEntry entry{.name = std::string(rest.substr(46, name)),
                       .stored = little_endian<std::uint16_t>(rest, 10) == 0,
                       .packed = little_endian<std::uint32_t>(rest, 20),
                       .size = little_endian<std::uint32_t>(rest, 24),
                       .header = little_endian<std::uint32_t>(rest, 42)};
        read_large_numbers(rest.substr(46 + name, extra), entry);
        entries.push_back(std::move(entry));
        rest.remove_prefix(46 + name + extra + comment);
    }
    return entries;
}

std::optional<std::string> invalid_sizes(const std::vector<ZipEntry>& entries,
                                         std::uint64_t file_size) {
    std::uint64_t code = 0;
    std::uint64_t compressed = 0;
    std::uint64_t stored = 0;
    for (const ZipEntry& entry : entries) {
        if (entry.name.size() > longest_name || entry.name.find('\0') != std::string::npos) {
            return "a record of it has a name that no writer of models gives";
        }
        if (entry.stored && entry.packed != entry.size) {
            return base::printable(entry.name) + " has two sizes";
        }
        std::uint64_t& total = is_code(entry.name) ? code : entry.stored ? stored : compressed;
        total += std::min(entry.size, std::uint64_t(1) << 60);
        if (code > most_code) {
            return "its code is larger than any sane one";
        }
        if (stored > file_size) {
            return "its records are larger than the file";
        }
        if (compressed > most_compressed) {
            return base::printable(entry.name) + " is compressed and would be " +
                   base::human_bytes(entry.size) + " large; PyTorch compresses no weights";
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::archive
