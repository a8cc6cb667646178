#pragma once
// Arguments whose value is known where a function is called: it is compiled for that value.

#include "python/syntax_tree.h"

#include <torch/csrc/jit/ir/ir.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// None, a flag or a short text: these decide what is computed and what types it has. Numbers do
// not, and would mean a function for each.
std::optional<python::ConstantValue> known_constant(const torch::jit::Value* value);

// Returns a known constant as part of a key. Texts carry their size, so that no two lists of values
// are alike.
std::string constant_key(const python::ConstantValue& value);

}  // namespace twinkle::runtime
