#pragma once
// The parameters, buffers and constants of an exported model, as tensors on the mapped archive:
// nothing is copied. What a model writes into a buffer stays in this process.

#include "runtime/exported/archive.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

struct Weights {
    // By path ("model.norm.weight"). Tied ones are one tensor.
    std::map<std::string, at::Tensor> tensors;
    // The other paths of a tensor that has several.
    std::map<std::string, std::vector<std::string>> ties;
    std::map<std::string, bool> is_parameter;
};

// Throws Error(malformed) for what reaches out of its record, needs a pickle, or holds no data.
Weights read_weights(const Archive& archive, const std::string& model);

}  // namespace twinkle::runtime::exported
