#pragma once
// Measurements that travel: one JSON file of any number of devices, sorted, to be read and reviewed
// by people. Entries of another device or build are kept apart, never dropped.

#include <string>
#include <string_view>

#include "tuning/entry.h"

namespace twinkle::tuning {

// Equal bytes for equal entries, in whatever order they came.
std::string export_text(const Entries& entries);

// Throws Error(malformed) with the place.
Entries read_export(std::string_view text, std::string_view origin);

}  // namespace twinkle::tuning
