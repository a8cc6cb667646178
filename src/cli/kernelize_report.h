#pragma once
// The report of kernelize, as a table for a person.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// `report`: schema twinkle.kernelize/1, from the worker. A line for sites that are alike, or for
// each, then the totals and the whole model. `columns` 0: as wide as needed.
std::string kernelize_table(const base::Json& report, bool each, std::size_t columns, bool color);

}  // namespace twinkle::cli
