#pragma once
// What Python computes of sizes, as operators of TorchScript.

#include "runtime/exported/program.h"

#include <cstdint>
#include <optional>
#include <string>

namespace twinkle::runtime::exported {

// "_operator.floordiv" → "aten::floordiv". None: there is none.
std::optional<std::string> counterpart_of(const std::string& target);

// The exponent, where the node is a power of integers with a small one: TorchScript's power of
// integers is not one.
std::optional<std::int64_t> small_power(const Node& node);

}  // namespace twinkle::runtime::exported
