#pragma once
// The methods that replacing a layer has added to a class: they are the kernel's, not the model's.

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// What the kernel's layer is called in a class, beside its forward method of that name.
std::string name_of_kernel_method(const std::string& layer, const std::string& forward);

// What makes the weights of that layer from the original's, while a model is kernelized.
std::string name_of_prepare_method(const std::string& layer);
// The class's own one; null: it has none (any more).
torch::jit::Function* prepare_method(const c10::ClassType& type);

bool is_of_a_kernel(const torch::jit::Function& method);
// Whether a layer has replaced this instance before (in an earlier kernelize of a saved model).
bool is_kernelized(const torch::jit::Module& module);
// Whether a kernel may have put weights of its own in the place of the original's: it has prepared
// some, or a class that it serves has tensors beside the parameters.
bool may_have_own_weights(const c10::ClassType& type);

}  // namespace twinkle::runtime
