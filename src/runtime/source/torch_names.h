#pragma once
// torch.… as kernel sources name it: modules, dtypes, operators of any namespace, math.

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <memory>
#include <string>

namespace twinkle::runtime {

// The value of a module that is not part of the kernel ("torch", "torch.nn.functional", "math"), or
// null.
std::shared_ptr<torch::jit::SugaredValue> foreign_module(const std::string& name);

// A member of such a module ("torch", "float32"); null if it has no meaning in TorchScript.
std::shared_ptr<torch::jit::SugaredValue> foreign_name(const std::string& module,
                                                       const std::string& name);

// Builtin exception classes and the like; null for other names.
std::shared_ptr<torch::jit::SugaredValue> builtin_name(const std::string& name);

// A constant as a value.
std::shared_ptr<torch::jit::SugaredValue> constant_value(c10::IValue value);

}  // namespace twinkle::runtime
