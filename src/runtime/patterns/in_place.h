#pragma once
// Operators that write into their first input: relu_(x), x += y.

#include "runtime/patterns/flat_graph.h"

#include <optional>

namespace twinkle::runtime {

// What the operator computes, if it is one of those that compute elementwise.
std::optional<c10::Symbol> without_writing(c10::Symbol op);

// Of a whole graph. An operator whose input was made by another one, which made it new, and that
// nobody else reads, writes into nothing that can be seen: it stays what it computes, and counts no
// more as a write. The others get their own names back.
void settle_in_place(FlatGraph& graph);

}  // namespace twinkle::runtime
