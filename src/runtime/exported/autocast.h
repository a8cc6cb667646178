#pragma once
// Autocast as explicit casts: the archive says what dtype came out, so that LibTorch's lists of
// operators are not needed.

#include "runtime/exported/program.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace twinkle::runtime::exported {

// What the floating point tensors that a node takes are cast to in its region. None: they stay as
// they are. Throws Error(refused) where that cannot be told.
std::optional<at::ScalarType> autocast_dtype(const Node& node, const Graph& graph,
                                             const c10::OperatorHandle& op);

// Autocast leaves other tensors alone.
bool may_be_cast(at::ScalarType dtype);

}  // namespace twinkle::runtime::exported
