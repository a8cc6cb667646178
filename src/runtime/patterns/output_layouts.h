#pragma once
// Outputs of a model get the layout back that they had before chains of convolutions were given one
// (docs/internals/layouts.md).

#include "runtime/patterns/pattern_sites.h"

#include <set>
#include <string>

namespace twinkle::runtime {

// Has the methods of the root give images that come from places with `layout` contiguous the layout
// of the images that they were computed from. `chosen`: the places that are replaced; after
// choose_image_layouts (image_layouts.h), before the calls are put.
void keep_output_layouts(const PatternSearch& places, const std::set<std::string>& chosen);

}  // namespace twinkle::runtime
