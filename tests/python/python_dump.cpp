// Parses the files named on standard input, one per line, and writes one JSON line for each: the
// size and CRC-32 of its dump, or its syntax error. With --dump FILE: the dump itself.
#include "dump.h"
#include "python/parser.h"

#include <array>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

using twinkle::python::DumpOptions;
using twinkle::python::parse_module;

std::uint32_t crc32(std::string_view text) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> out{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t c = i;
            for (int k = 0; k < 8; ++k) c = c & 1 ? 0xEDB88320U ^ c >> 1 : c >> 1;
            out[i] = c;
        }
        return out;
    }();
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const char c : text) {
        crc = table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ crc >> 8;
    }
    return ~crc;
}

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

constexpr DumpOptions kOptions{.spans = true, .fstring_spans = false};

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--dump") {
        const auto result = parse_module(read(argv[2]), argv[2]);
        if (!result) {
            std::cerr << result.error().where() << ": " << result.error().message << "\n";
            return 1;
        }
        std::cout << dump(**result, kOptions) << "\n";
        return 0;
    }
    std::string path;
    while (std::getline(std::cin, path)) {
        const auto result = parse_module(read(path), path);
        if (!result) {
            const auto& error = result.error();
            std::cout << R"({"line":)" << error.line << R"(,"column":)" << error.column
                      << R"(,"error":")" << escaped(error.message) << "\"}\n";
            continue;
        }
        const auto text = dump(**result, kOptions);
        std::cout << R"({"size":)" << text.size() << R"(,"crc32":)" << crc32(text)
                  << R"(,"height":)" << (*result)->height << "}\n";
    }
    return 0;
}
