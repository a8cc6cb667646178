#pragma once
// The parameters, buffers and constants of an exported model. A record is read once, into the
// memory that its tensors share; of a mapped archive they share the mapping.

#include "archive/archive.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace twinkle::runtime::exported {

struct Weights {
    // By path ("model.norm.weight"). Tied ones are one tensor.
    std::map<std::string, at::Tensor> tensors;
    // All paths of a tensor, by each of them: one list for all.
    std::map<std::string, std::shared_ptr<const std::vector<std::string>>> ties;
    std::map<std::string, bool> is_parameter;
    std::map<std::string, std::string> objects;  // records of objects, by path (objects.h)
};

// `objects`: the paths that the program calls objects of torch.classes; these are not read. Throws
// Error(malformed) for what reaches out of its record, needs a pickle, or holds no data.
Weights read_weights(const archive::Archive& archive, const std::string& model,
                     const std::set<std::string>& objects);

}  // namespace twinkle::runtime::exported
