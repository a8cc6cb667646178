#pragma once
// A JSON result as text for a person: lists of objects as tables, lists of values as lists.

#include <cstddef>
#include <string>

#include "base/json.h"

namespace twinkle::cli {

std::string document_text(const base::Json& document, std::size_t columns, bool color);

}  // namespace twinkle::cli
