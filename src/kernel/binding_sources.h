#pragma once
// The operators that the C++ sources of a kernel's bindings define, read without building them.

#include <filesystem>
#include <string_view>
#include <vector>

#include "twinkle/mapping.h"

namespace twinkle::kernel {

// Every string literal that is one complete schema, sorted by name; literals that follow each other
// are one. Of several with one name the first counts.
std::vector<MappedOperator> operators_in_source(std::string_view source);

// Reads the C++ and CUDA files below a folder that register operators.
std::vector<MappedOperator> operators_of_bindings(const std::filesystem::path& folder);

}  // namespace twinkle::kernel
