#pragma once
// Results of a model as a file that torch.load(weights_only=True) reads.

#include <ATen/core/ivalue.h>

#include <string>

namespace twinkle::runtime {

// The bytes that torch.save would write: tensors, numbers, strings and None, in lists, tuples and
// dicts; an enum as its value. Throws Error(malformed) for other values, which such a file cannot
// hold.
std::string pickled_outputs(const c10::IValue& outputs);

}  // namespace twinkle::runtime
