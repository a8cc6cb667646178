#pragma once
// The operators that a shared library defines, found in its read-only data without loading it.

#include <filesystem>
#include <string_view>
#include <vector>

#include "binary/elf_layout.h"
#include "binary/library.h"
#include "kernel/layers.h"
#include "twinkle/mapping.h"

namespace twinkle::kernel {

// Every complete schema among the constant strings of an ELF library, sorted by name. Those with
// another namespace than `op_namespace` are left out. A file that is no ELF library, or a broken
// one, has none. Compilers store text of 16 or 32 bytes without its NUL, so that a schema may stand
// right behind something else: it is found there if the package calls its operator by name.
std::vector<MappedOperator> find_operators(const std::filesystem::path& library,
                                           std::string_view op_namespace,
                                           const PackageSources& sources = {});
std::vector<MappedOperator> find_operators(const binary::ElfLayout& library,
                                           std::string_view op_namespace,
                                           const PackageSources& sources = {});

// Whether it calls what defines operators when it is loaded. How many it defines is not told by
// that: a compiler may have split a schema's text, or made numbers of it, and then it is not found.
bool defines_operators(const binary::Library& library);

// Linkers store a string that is the end of another one only inside that one: "norm(…)" in
// "fused_norm(…)". Adds those that the package calls by name (ops.norm), with as many arguments.
void add_merged_operators(std::vector<MappedOperator>& operators, const PackageSources& sources);

}  // namespace twinkle::kernel
