#pragma once
// How deep a TOML document nests, found without recursion: the parser and all code that walks its
// tree recurse as deep as the document nests.

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/json_events.h"

namespace twinkle::base {

// The first position where the document nests deeper than `limit`, by dotted keys, dotted headers,
// arrays and inline tables together. For a text that is not TOML only the part before its first
// error counts: there the parser stops.
std::optional<TextPosition> too_deep_in_toml(std::string_view text, std::size_t limit);

}  // namespace twinkle::base
