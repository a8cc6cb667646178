#pragma once
// A callable: an operator or function of a kernel, or a function of the program.

#include "twinkle/api.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twinkle {

// A call's result; converts to at::Tensor, or is any value of TorchScript.
struct Result {
    c10::IValue value;

    operator at::Tensor() const {  // NOLINT(google-explicit-constructor)
        return value.toTensor();
    }
};

// Callable with tensors, numbers, booleans, strings, lists of them and None (c10::IValue()).
// Integers are accepted as floats.
//
// Calls throw Error(malformed) for arguments that do not fit, Error(refused) for what cannot be
// compiled for them, Error(failed) where the kernel itself throws.
class TWINKLE_API Implementation {
public:
    using Keywords = std::map<std::string, c10::IValue>;
    using Body = std::function<c10::IValue(std::vector<c10::IValue>, const Keywords&)>;

    // `parameters`: the parameter types as TorchScript writes them; nullopt: unknown.
    // `differentiable`: calls record gradients, as LibTorch's operators do, so that it can replace
    // a function in training.
    Implementation(std::string name, Body body,
                   std::optional<std::vector<std::string>> parameters = {},
                   bool differentiable = true)
        : name_(std::move(name)),
          body_(std::move(body)),
          parameters_(std::move(parameters)),
          differentiable_(differentiable) {}

    template <class... Arguments>
    Result operator()(Arguments&&... arguments) const {
        return call({c10::IValue(std::forward<Arguments>(arguments))...});
    }
    Result call(std::vector<c10::IValue> arguments, const Keywords& keywords = {}) const {
        return {body_(std::move(arguments), keywords)};
    }
    const std::string& name() const { return name_; }
    const std::optional<std::vector<std::string>>& parameters() const { return parameters_; }
    // False for operators of kernels without an autograd kernel, and for functions of a kernel:
    // called by themselves, they are compiled for inference.
    bool is_differentiable() const { return differentiable_; }

private:
    std::string name_;
    Body body_;
    std::optional<std::vector<std::string>> parameters_;
    bool differentiable_;
};

}  // namespace twinkle
