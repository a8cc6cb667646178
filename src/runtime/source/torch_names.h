#pragma once
// torch.… as kernel sources name it: modules, dtypes, operators of any namespace, math.

#include "python/syntax_tree.h"

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <functional>
#include <memory>
#include <string>

namespace twinkle::runtime {

// Answers functions of torch that no operator computes with the same arguments; null for others.
using PythonFunctions = std::function<std::shared_ptr<torch::jit::SugaredValue>(
    const std::string& module, const std::string& name)>;

// The value of a module that is not part of the kernel ("torch", "torch.nn.functional", "math"), or
// null.
std::shared_ptr<torch::jit::SugaredValue> foreign_module(const std::string& name,
                                                         const PythonFunctions& functions);

// A member of such a module ("torch", "float32"); null if it has no meaning in TorchScript.
std::shared_ptr<torch::jit::SugaredValue> foreign_name(const std::string& module,
                                                       const std::string& name,
                                                       const PythonFunctions& functions);

// Builtin exception classes and the like; null for other names.
std::shared_ptr<torch::jit::SugaredValue> builtin_name(const std::string& name);

bool is_exception(const std::string& builtin);

// A name that is known to come from elsewhere and has no meaning in TorchScript: an error only
// where it is used as a value.
std::shared_ptr<torch::jit::SugaredValue> unknown_foreign(const std::string& name);

// A literal as a value; null if TorchScript has no such constant.
std::shared_ptr<torch::jit::SugaredValue> literal_value(const python::Constant& constant);

// A constant as a value.
std::shared_ptr<torch::jit::SugaredValue> constant_value(c10::IValue value);

}  // namespace twinkle::runtime
