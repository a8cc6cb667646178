#pragma once
// The inputs of a run: a file that torch.save wrote, or a description of tensors to make.

#include "runtime/model/input_description.h"

#include <torch/script.h>

#include <functional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct Inputs {
    std::vector<c10::IValue> positional;
    std::unordered_map<std::string, c10::IValue> named;
};

// `text` is a path, or a description (input_description.h). A file holds a tensor, a tuple or list
// of positional inputs, or a dict of named ones. Throws Error(not_found) or Error(malformed).
Inputs read_inputs(const std::string& text);

// Applies a function to every tensor, also in tuples; named inputs in the order of their names.
Inputs mapped(const Inputs& inputs, const std::function<at::Tensor(const at::Tensor&)>& change);
std::vector<at::Tensor> tensors_of(const Inputs& inputs);  // in this order
void move_to(Inputs& inputs, torch::Device device);
// Copies; floating-point tensors are converted to another dtype, everything else stays.
Inputs with_dtype(const Inputs& inputs, at::ScalarType dtype);
Inputs deep_copy(const Inputs& inputs);

}  // namespace twinkle::runtime
