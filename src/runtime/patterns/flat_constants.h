#pragma once
// Comparing constants of flat graphs, however they are written.

#include "runtime/patterns/flat_graph.h"

namespace twinkle::runtime {

// Numbers are equal by value, be they integers or not; tensors never are.
bool equal_constants(const c10::IValue& one, const c10::IValue& other);

// A constant that is a list, or a list that is made of constants.
bool is_constant_list(const FlatGraph& graph, ValueId id);
// Whether both are such lists, of equal constants.
bool equal_lists(const FlatGraph& graph, ValueId one, const FlatGraph& other_graph, ValueId other);

}  // namespace twinkle::runtime
