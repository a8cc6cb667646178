#pragma once
// Whether a replay gives what a run gives. Compared where the tensors are, in pieces.

#include <ATen/core/ivalue.h>

namespace twinkle::runtime {

// Equal but for what the order of sums makes: a kernel that was not captured (because it runs on
// another stream than the current one) leaves values that have nothing to do with each other.
bool same_results(const c10::IValue& replayed, const c10::IValue& expected);

}  // namespace twinkle::runtime
