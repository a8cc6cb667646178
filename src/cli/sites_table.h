#pragma once
// The sites of a report, for a person: of kernelize and of bench.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// A line for sites that are alike, or for each of them, with reasons in a list below if `columns`
// has no room for them; then "9 sites: 7 replaced, 2 kept, 0 put back; mode inference; …".
// `columns` 0: as wide as needed.
std::string sites_text(const base::Json& report, bool each, std::size_t columns, bool color);

}  // namespace twinkle::cli
