#pragma once
// Fields of JSON. Those of the worker's reports may be missing or of another kind.

#include <cstdint>
#include <string>

#include "base/json.h"

namespace twinkle::cli {

// A string; empty where there is none.
std::string text_of(const base::Json& object, const char* key);
// The same, fit for a terminal.
std::string shown_text(const base::Json& object, const char* key);

// A count; 0 where there is none.
std::uint64_t count_in(const base::Json& object, const char* key);
// An array; an empty one where there is none.
const base::Json& list_of(const base::Json& object, const char* key);
// The texts of an array, fit for a terminal: "a, b".
std::string joined_texts(const base::Json& texts);

// For reports of our own: null for an empty text.
base::Json text_or_null(const std::string& text);

}  // namespace twinkle::cli
