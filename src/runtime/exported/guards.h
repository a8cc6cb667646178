#pragma once
// What the model was exported for, checked on every call: ranks and fixed sizes, sizes that are the
// same, ranges, and the conditions that the code asked of sizes. As in Python, sizes of 0 and 1 are
// let through where a range begins at 2 or below.

#include "runtime/exported/parameters.h"
#include "runtime/exported/program.h"

#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace twinkle::runtime::exported {

// Writes checks at the insert point. Throws Error(refused) for a condition that it cannot write.
void write_guards(torch::jit::Graph& graph, const Program& program,
                  const std::vector<Leaf>& leaves);

}  // namespace twinkle::runtime::exported
