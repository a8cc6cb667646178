#pragma once
// The contents of a shared library, without loading it: its exports, its requirements and the GPUs
// that it has code for.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "binary/device_code.h"
#include "binary/elf_symbols.h"

namespace twinkle::binary {

struct SectionSize {
    std::string name;
    std::uint64_t size = 0;
};

struct Library {
    std::uint64_t file_size = 0;
    int bits = 64;
    bool little_endian = true;
    std::string machine;    // "x86_64"
    bool readable = false;  // false: 32-bit or big-endian; nothing below is known
    bool shared = false;    // false: an object file or a program

    std::string soname;
    std::vector<std::string> needed;
    std::vector<std::string> rpath;    // DT_RPATH …
    std::vector<std::string> runpath;  // … and DT_RUNPATH, split at colons
    bool bind_now = false;
    bool text_relocations = false;
    bool has_initializers = false;  // code that runs as soon as it is loaded

    SymbolTable symbols;
    // The newest version of each kind that other libraries must provide: "GLIBC" → "2.28".
    std::map<std::string, std::string> newest_versions;
    std::vector<std::string> python_symbols;  // undefined ones of CPython's C API, sorted

    DeviceCodeList device_code;
    std::vector<SectionSize> sections;  // largest first
};

// None: no ELF file. Throws Error if the file cannot be read.
std::optional<Library> read_library(const std::filesystem::path& path);
std::optional<Library> read_library(const ByteSource& source);

// The kind and number of a symbol version: "GLIBC_2.17" → "GLIBC", "2.17". The marker of packed
// relative relocations (DT_RELR) counts as the glibc that introduced them. None: not numbered.
struct SymbolVersion {
    std::string kind;
    std::string number;
};
std::optional<SymbolVersion> parse_symbol_version(std::string_view text);

// Compares numerically: 2.9 < 2.28.
bool is_newer(std::string_view version, std::string_view than);

bool is_python_symbol(std::string_view name);

}  // namespace twinkle::binary
