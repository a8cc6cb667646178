#pragma once
// JSON from outside is hostile: limited in size and depth, no duplicate keys, every error has
// file, line and column.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace twinkle::base {

using Json = nlohmann::json;  // object keys sorted: the same input gives the same bytes

struct JsonLimits {
    std::size_t bytes = 64u << 20;
    std::size_t depth = 64;
};

// `origin` is the file name (or URL) for messages. Throws Error(malformed).
Json parse_json(std::string_view text, std::string_view origin, JsonLimits limits = {});
Json read_json_file(const std::filesystem::path& path, std::string_view what,
                    JsonLimits limits = {});

// Two-space indent, invalid UTF-8 replaced, ends with a newline.
std::string dump_json(const Json& value);
// Writes one line, without a newline; invalid UTF-8 is replaced.
std::string json_line(const Json& value);

}  // namespace twinkle::base
