#pragma once

#include "runtime/trace/region.h"

#include <ATen/core/function_schema.h>

namespace twinkle::runtime {

// The schema assumed for a C++ function, which does not describe itself, in the place of a region:
// a tensor for each input, and one result.
c10::FunctionSchema call_schema(const Region& region);

}  // namespace twinkle::runtime
