#pragma once
// The weights that kernels' layers make of a model's own, once, while it is kernelized
// (layers/prepared_class.h): who needs them, their making, and their place in the model.

#include "runtime/graph/sites.h"

#include <torch/script.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

using NamedTensors = std::map<std::string, at::Tensor>;

struct PreparedWeights {
    std::map<std::string, NamedTensors> made;   // by the path of an instance
    std::map<std::string, std::string> failed;  // why not
};

// The instances whose class has a method `prepare` of a kernel, each once.
std::vector<Instance> instances_to_prepare(const torch::jit::Module& model);

// Prepares in this process, which has loaded the kernels.
PreparedWeights prepare_here(const std::vector<Instance>& instances);

// Prepares in a confined child process, which loads the kernels; what it sends is checked, and its
// values are copied. `device`: where the kernels compute, if that is another one.
PreparedWeights prepare_in_child(const std::vector<Instance>& instances,
                                 const std::optional<at::Device>& device);

// Puts them in the place of the instance's own tensors of these names, or beside them.
void put_weights(const Instance& instance, const NamedTensors& weights);

// Takes the methods off the classes again: the model keeps what they have made.
void forget_preparation(const std::vector<Instance>& instances);

}  // namespace twinkle::runtime
