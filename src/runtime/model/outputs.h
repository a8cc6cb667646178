#pragma once
// Results of a model as a file that torch.load(weights_only=True) reads.

#include <ATen/core/ivalue.h>

#include <string>

namespace twinkle::runtime {

// The bytes that torch.save would write: tensors, numbers, texts and None, in lists, tuples and
// dicts; of an enum its value. Throws Error(malformed) for what such a file cannot hold.
std::string pickled_outputs(const c10::IValue& outputs);

}  // namespace twinkle::runtime
