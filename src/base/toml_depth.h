#pragma once
// How deep a TOML document nests, found without recursion: the parser and all that walks its tree
// recurse as deep as a document asks for.

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/json_events.h"

namespace twinkle::base {

// Where the document is nested deeper than `limit` for the first time, by dotted keys, dotted
// headers, arrays and inline tables together. Of a text that is not TOML, what comes before its
// first error counts: there the parser stops.
std::optional<TextPosition> too_deep_in_toml(std::string_view text, std::size_t limit);

}  // namespace twinkle::base
