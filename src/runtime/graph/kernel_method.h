#pragma once
// The methods that replacing a layer has added to a class: they are the kernel's, not the model's.

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// What the kernel's layer is called in a class, beside its forward method of that name.
std::string name_of_kernel_method(const std::string& layer, const std::string& forward);

bool is_of_a_kernel(const torch::jit::Function& method);
// Whether a layer has replaced this instance before (in an earlier kernelize of a saved model).
bool is_kernelized(const torch::jit::Module& module);

}  // namespace twinkle::runtime
