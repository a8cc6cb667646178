#pragma once
// Results of a model as a file that torch.load(weights_only=True) reads.

#include <ATen/core/ivalue.h>

#include <string>

namespace twinkle::runtime {

// The bytes that torch.save would write. Throws c10::Error for what cannot be pickled.
std::string pickled_outputs(const c10::IValue& outputs);

}  // namespace twinkle::runtime
