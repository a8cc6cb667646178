#pragma once
// TOML and JSON files as one kind of tree.

#include <filesystem>
#include <string_view>

#include "base/document.h"

namespace twinkle::project {

// The ending decides: .json is JSON, everything else TOML.
base::Node read_document_file(const std::filesystem::path& file, std::string_view what);

}  // namespace twinkle::project
