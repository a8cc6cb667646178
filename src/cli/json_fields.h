#pragma once
// Fields of JSON objects. Those of the worker's reports may be missing or of another type.

#include <cstdint>
#include <string>

#include "base/json.h"

namespace twinkle::cli {

// A string; empty if there is none.
std::string text_of(const base::Json& object, const char* key);
// The same, safe for a terminal.
std::string shown_text(const base::Json& object, const char* key);

// A count; 0 if there is none.
std::uint64_t count_in(const base::Json& object, const char* key);
// False if there is no truth value.
bool is_true(const base::Json& object, const char* key);
// An object; an empty one if there is none.
const base::Json& object_of(const base::Json& object, const char* key);
// An array; an empty one if there is none.
const base::Json& list_of(const base::Json& object, const char* key);
// The strings of an array, safe for a terminal: "a, b".
std::string joined_texts(const base::Json& texts);

// Returns null for an empty text, for our own reports.
base::Json text_or_null(const std::string& text);

}  // namespace twinkle::cli
