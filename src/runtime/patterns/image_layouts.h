#pragma once
// In which layout convolutions write their results (docs/internals/layouts.md).

#include "runtime/patterns/pattern_sites.h"

#include <set>
#include <string>
#include <unordered_set>

namespace twinkle::runtime {

// Sets the parameter `layout` of the places whose formula has one. `chosen`: the places that are
// replaced. `layers`: modules that are, too; what they compute may not take any layout.
void choose_image_layouts(PatternSearch& places, const std::set<std::string>& chosen,
                          const std::unordered_set<const void*>& layers);

}  // namespace twinkle::runtime
