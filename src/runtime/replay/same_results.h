#pragma once
// Whether a replay gives the results of a run. Compares where the tensors are, in pieces.

#include <ATen/core/ivalue.h>

namespace twinkle::runtime {

// Equal up to the order of summation. The error to detect is a kernel that was not captured
// (because it runs on another stream than the current one): its values are unrelated.
bool same_results(const c10::IValue& replayed, const c10::IValue& expected);

}  // namespace twinkle::runtime
