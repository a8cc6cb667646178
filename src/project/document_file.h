#pragma once
// TOML and JSON files as one kind of tree.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/document.h"

namespace twinkle::project {

// `origin` is the file name for messages. Members are in the order of the document.
base::Node parse_toml_document(std::string_view text, std::string_view origin);

// By its ending: .json is JSON, everything else TOML.
base::Node read_document_file(const std::filesystem::path& file, std::string_view what);

}  // namespace twinkle::project
