#pragma once
// Names of precisions that are coarser than a model's own, as layers state them.

#include <string_view>

namespace twinkle::kernel {

// Whether this may be one: "int8", "int4", "fp8". Which there are is up to the kernels.
bool is_precision(std::string_view name);

}  // namespace twinkle::kernel
