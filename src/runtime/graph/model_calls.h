#pragma once
// What a model's own methods call, followed from the root, and the parameters that they pass.

#include <torch/script.h>

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace twinkle::runtime {

struct ModelCalls {
    using Method = std::pair<const void*, std::string>;  // the instance's object and the method

    explicit ModelCalls(const torch::jit::Module& root);

    // The methods that are called, each with the tensor that every call passes for an input;
    // undefined where calls differ or pass no parameter, and no entry where nothing is known.
    std::map<Method, std::vector<at::Tensor>> methods;
    std::unordered_set<const void*> instances;
    bool all_followed = true;  // false: some call leads nobody knows where
};

// Whether two tensors are one parameter. They need not be one object: a saved model has a tensor
// for each place, over one storage.
bool is_same_parameter(const at::Tensor& a, const at::Tensor& b);

}  // namespace twinkle::runtime
