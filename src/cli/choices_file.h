#pragma once
// What serves the sites of a kernelized model, as a file: inspect --choices writes it, kernelize
// --choices reads it.

#include <filesystem>
#include <string>

#include "base/json.h"

namespace twinkle::cli {

// Writes an inspected model's labels. Returns of how many sites. Throws Error(not_found) where it
// has none.
std::size_t write_choices(const std::filesystem::path& file, const base::Json& inspected);

// The file's text. Throws Error(malformed) where it is none of choices: each site once, and all of
// the types that write_choices() writes.
std::string read_choices(const std::filesystem::path& file);

}  // namespace twinkle::cli
