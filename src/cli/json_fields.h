#pragma once
// Fields of the worker's reports, which may be missing or of another kind.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// A string; empty where there is none.
std::string text_of(const base::Json& object, const char* key);
// The same, fit for a terminal.
std::string shown_text(const base::Json& object, const char* key);

}  // namespace twinkle::cli
