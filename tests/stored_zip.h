#pragma once
// Zip archives as PyTorch writes them, made in memory: stored, and without checksums, which nothing
// here reads.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace twinkle::tests {

using Records = std::vector<std::pair<std::string, std::string>>;  // name, data

inline std::string little_endian(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
        text += i < 8 ? static_cast<char>(value >> (8 * i)) : char(0);
    }
    return text;
}

inline std::string zip_of(const Records& records) {
    std::string file;
    std::string directory;
    for (const auto& [name, data] : records) {
        const std::string common = little_endian(0, 12) + little_endian(data.size(), 4) +
                                   little_endian(data.size(), 4) + little_endian(name.size(), 2) +
                                   little_endian(0, 2);
        directory += "PK\x01\x02" + little_endian(0, 4) + common + little_endian(0, 10) +
                     little_endian(file.size(), 4) + name;
        file += "PK\x03\x04" + little_endian(0, 2) + common + name + data;
    }
    const std::size_t at = file.size();
    return file + directory + "PK\x05\x06" + little_endian(0, 4) +
           little_endian(records.size(), 2) + little_endian(records.size(), 2) +
           little_endian(directory.size(), 4) + little_endian(at, 4) + little_endian(0, 2);
}

}  // namespace twinkle::tests
