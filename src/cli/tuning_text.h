#pragma once
// What --tune has measured of a model's sites, by the size of their inputs, as a table for a
// person.

#include <string>

#include "base/json.h"

namespace twinkle::cli {

// `report`: schema twinkle.kernelize/1. Sites of one class or function with equal measurements
// share their lines; "" where nothing was measured.
std::string tuning_text(const base::Json& report, std::size_t columns, bool color);

}  // namespace twinkle::cli
