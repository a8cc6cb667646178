#pragma once
// Comparisons of plain values, by their names in tuning.toml.

#include <optional>
#include <string>
#include <string_view>

#include "tuning/declaration.h"

namespace twinkle::tuning {

std::optional<Comparison> comparison_named(std::string_view name);
std::string comparison_names();                       // "at_most, at_least, …"
std::string comparison_words(Comparison comparison);  // "at most "; of `equals`: nothing

// Values of different kinds differ, and nothing else holds of them; order is that of integers.
bool holds(const base::Json& value, Comparison comparison, const base::Json& bound);

}  // namespace twinkle::tuning
