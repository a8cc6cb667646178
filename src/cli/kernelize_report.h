#pragma once
// The report of kernelize, as a table for a person.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// `report`: schema twinkle.kernelize/1, from the worker. A line a site, what it means where
// `columns` has no room for the reasons as a list below, then the totals and the whole model.
// `columns` 0: as wide as it needs to be.
std::string kernelize_table(const base::Json& report, std::size_t columns, bool color);

}  // namespace twinkle::cli
