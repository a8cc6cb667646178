#pragma once
// A package of AOTInductor (.pt2): machine code in an archive. What it says of itself is read here;
// nothing of it is loaded or unpacked.

#include "target/compiled_code.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace twinkle::archive {

struct CompiledModel {
    std::string name;
    target::CompiledFor made_for;
    std::map<std::string, std::size_t> operators;  // called by name: "ns::op" → calls
    std::map<std::string, std::string> metadata;   // of its author
    std::vector<std::string> libraries;            // records of the archive
    std::uint64_t library_bytes = 0;               // with the weights, if none lie beside it
    std::uint64_t gpu_code_bytes = 0;
    std::uint64_t source_bytes = 0;
};

struct CompiledPackage {
    std::vector<CompiledModel> models;  // by name
    std::uint64_t weight_bytes = 0;     // beside the libraries
    std::uint64_t bytes = 0;            // of the file
};

// Throws Error(malformed) for what is no such package, is damaged, or has records that an unpacker
// would write outside of its own folder.
CompiledPackage read_package(const std::filesystem::path& file);

// Whether there is such a package in the file, and nothing that can be converted.
bool is_compiled(const std::filesystem::path& file);

}  // namespace twinkle::archive
