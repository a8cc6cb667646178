#pragma once
// Parses TOML into the same tree as JSON.

#include <string>
#include <string_view>

#include "base/document.h"

namespace twinkle::base {

// `origin` is the file name for messages. Members are in the order of the document. Throws
// Error(malformed).
Node parse_toml_document(std::string_view text, std::string_view origin);

// A basic string, with its quotation marks.
std::string toml_string(std::string_view text);

// A key: bare if TOML allows it, else a basic string.
std::string toml_key(const std::string& name);

}  // namespace twinkle::base
