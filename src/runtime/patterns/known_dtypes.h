#pragma once
// What dtype the result of an operator has, where its inputs tell.

#include "runtime/patterns/flat_graph.h"

namespace twinkle::runtime {

// Undefined: it is not known.
c10::ScalarType known_dtype(const FlatGraph& graph, const FlatNode& node);

}  // namespace twinkle::runtime
