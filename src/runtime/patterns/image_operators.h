#pragma once
// What is known of operators on images, and of the places that have a layout.

#include "runtime/patterns/pattern_sites.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <unordered_set>

namespace twinkle::runtime {

// What a place's parameter `layout` says (kernels/twinkle-pack/python/convolutions.py).
enum class ImageLayout : std::int64_t { as_found = 0, channels_last = 1, contiguous = 2 };

std::unordered_set<c10::Symbol> aten_symbols(std::initializer_list<const char*> names);

// LibTorch's operators that take any layout, and whose results may have that of what they take.
bool passes_layout_on(c10::Symbol op);

// Which parameter of a place's formula is `layout`; Formula::npos if none is.
std::size_t layout_parameter(const PatternSite& site);

}  // namespace twinkle::runtime
