#pragma once
// Something to call: an operator or function of a kernel, or a function of the program.

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

// What a call returns: an at::Tensor where one is wanted, any value of TorchScript else.
struct Result {
    c10::IValue value;

    operator at::Tensor() const {  // NOLINT(google-explicit-constructor)
        return value.toTensor();
    }
};

// Something that can be called with tensors, numbers, truth values, text, lists of them and None
// (c10::IValue()). Integers serve as floats where floats are due.
//
// Calls throw Error(malformed) for arguments that do not fit, Error(refused) for what cannot be
// compiled for them, Error(failed) where the kernel itself throws.
class TWINKLE_API Implementation {
public:
    using Keywords = std::map<std::string, c10::IValue>;
    using Body = std::function<c10::IValue(std::vector<c10::IValue>, const Keywords&)>;

    // `parameters`: the types that it takes, as TorchScript writes them; none: that is not known.
    Implementation(std::string name, Body body,
                   std::optional<std::vector<std::string>> parameters = {})
        : name_(std::move(name)), body_(std::move(body)), parameters_(std::move(parameters)) {}

    template <class... Arguments>
    Result operator()(Arguments&&... arguments) const {
        return call({c10::IValue(std::forward<Arguments>(arguments))...});
    }
    Result call(std::vector<c10::IValue> arguments, const Keywords& keywords = {}) const {
        return {body_(std::move(arguments), keywords)};
    }
    const std::string& name() const { return name_; }
    const std::optional<std::vector<std::string>>& parameters() const { return parameters_; }

private:
    std::string name_;
    Body body_;
    std::optional<std::vector<std::string>> parameters_;
};

}  // namespace twinkle
