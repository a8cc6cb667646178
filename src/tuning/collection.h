#pragma once
// Measurements that travel: one JSON file of any number of devices, sorted, to be read and reviewed
// by people. Entries of another device or build are kept apart, never dropped.

#include <cstddef>
#include <string>
#include <string_view>

#include "tuning/entry.h"

namespace twinkle::tuning {

// What is written is never larger than what is read.
constexpr std::size_t largest_export = 128u << 20;

// A line for each entry; equal bytes for equal entries, in whatever order they came. Throws
// Error(refused) for more than `largest` bytes; `where` is the file that they are for.
std::string export_text(const Entries& entries, std::string_view where = "",
                        std::size_t largest = largest_export);

// Throws Error(malformed) with the place.
Entries read_export(std::string_view text, std::string_view origin);

}  // namespace twinkle::tuning
