#pragma once
// Operators that write into their first input: relu_(x), x += y.

#include "runtime/patterns/flat_graph.h"

#include <optional>

namespace twinkle::runtime {

// What the operator computes, if it is one of those that compute elementwise.
std::optional<c10::Symbol> without_writing(c10::Symbol op);

// Settles all in-place operators of a graph. One that writes into a new tensor which nobody else
// reads is treated as its plain form and no longer counts as a write, because nobody can see that
// it writes. The others get their own names back.
void settle_in_place(FlatGraph& graph);

}  // namespace twinkle::runtime
