#pragma once
// The dynamic symbols of a library with their versions, read as the loader does: by the dynamic
// table, not by section headers, which may be stripped or lie.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "binary/elf_layout.h"

namespace twinkle::binary {

struct Symbol {
    std::string_view name;     // as in the file, mangled
    std::string_view version;  // "GLIBC_2.17"; empty: without
    bool default_version = false;
    bool defined = false;
    bool weak = false;
    bool local = false;
    bool function = false;
};

// The versions that a library requires of another: "libc.so.6", {"GLIBC_2.17", …}.
struct VersionNeed {
    std::string library;
    std::vector<std::string> versions;
};

struct SymbolTable {
    std::shared_ptr<const std::string> names;  // keeps the names of `symbols`
    std::vector<Symbol> symbols;               // in the order of the file, without its empty first
    std::vector<VersionNeed> needs;
    bool complete = true;  // false: the table was cut or is larger than anything real
};

SymbolTable read_symbols(const ElfLayout& layout);

// A string of the dynamic string table; empty if out of bounds.
std::string dynamic_string(const ElfLayout& layout, std::uint64_t offset);

}  // namespace twinkle::binary
