#pragma once

#include "runtime/trace/region.h"

#include <ATen/core/function_schema.h>

namespace twinkle::runtime {

// What a C++ function, which says nothing of itself, is taken for where it stands for a region: it
// gets so many tensors, and gives one.
c10::FunctionSchema call_schema(const Region& region);

}  // namespace twinkle::runtime
