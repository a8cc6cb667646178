#pragma once
// The numbers of the schema, which are not LibTorch's.

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>

namespace twinkle::runtime::exported {

// None: LibTorch's is not known, or has no such thing.
std::optional<at::ScalarType> scalar_type(std::int64_t number);
std::optional<at::Layout> layout(std::int64_t number);
std::optional<at::MemoryFormat> memory_format(std::int64_t number);

}  // namespace twinkle::runtime::exported
