#pragma once
// What can stand for a function of a model: something to call, with the parameters that it has.

#include "runtime/source/package_values.h"
#include "twinkle/implementation.h"

#include <torch/csrc/jit/frontend/sugared_value.h>

#include <tl/expected.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct SubstituteParameter {
    std::string name;
    bool has_default = false;
    bool keyword_only = false;
    c10::TypePtr type = nullptr;  // none: known when it is called
};

struct Substitute {
    std::string name;  // for messages
    std::shared_ptr<torch::jit::SugaredValue> value;
    std::vector<SubstituteParameter> parameters;
    std::function<void()> begin = [] {};  // to be called before each call of it is compiled
};

using Substitutes = std::vector<Substitute>;  // tried in this order

// Every overload of an operator. The error says that there is none.
tl::expected<Substitutes, std::string> operator_substitutes(const std::string& qualified_name);

// A function of a package, of its `__init__` or, as "module.name", of a module of it; or a layer of
// it that needs nothing of the instance it stands in. Begins a compilation.
tl::expected<Substitutes, std::string> package_substitutes(Compilation& compilation,
                                                           const std::string& name);

// A C++ function, as an operator of the types of what it stands for; for the life of the process.
Substitutes native_substitutes(const std::string& name, const Implementation& implementation,
                               const c10::FunctionSchema& stands_for);

}  // namespace twinkle::runtime
