#include "twinkle/kernel.h"

#include "base/document.h"
#include "base/text.h"
#include "kernel/layers.h"
#include "runtime/direct/kernel_state.h"
#include "runtime/direct/operator_call.h"
#include "runtime/kernels/operator_facts.h"
#include "runtime/source/kernel_package.h"
#include "twinkle/error.h"

namespace twinkle {

namespace {

std::string parameter_text(const kernel::Parameter& parameter) {
    const char* stars = parameter.kind == kernel::ParameterKind::var_positional ? "*"
                        : parameter.kind == kernel::ParameterKind::var_keyword  ? "**"
                                                                                : "";
    std::string text = stars + parameter.name;
    if (!parameter.annotation.empty()) {
        text += ": " + parameter.annotation;
    }
    if (parameter.has_default) {
        text += (parameter.annotation.empty() ? "=" : " = ") + parameter.default_text;
    }
    return text;
}

std::string signature_of(const kernel::FunctionSource& function) {
    std::vector<std::string> parameters;
    bool keyword_only = false;
    for (const kernel::Parameter& parameter : function.parameters) {
        if (parameter.kind == kernel::ParameterKind::var_positional) {
            keyword_only = true;
        } else if (parameter.kind == kernel::ParameterKind::keyword_only && !keyword_only) {
            parameters.emplace_back("*");
            keyword_only = true;
        }
        parameters.push_back(parameter_text(parameter));
    }
    return function.name + "(" + base::join(parameters, ", ") + ")" +
           (function.returns.empty() ? "" : " -> " + function.returns);
}

[[noreturn]] void no_such(const char* what, const std::string& name, const std::string& kernel,
                          const std::vector<std::string>& there) {
    throw Error(ErrorCode::not_found,
                {.what = kernel + " has no " + what + " \"" + base::printable(name) + "\"",
                 .where = "",
                 .why = there.empty() ? std::string("it has none")
                                      : "there are: " + base::join(there, ", "),
                 .hint = base::suggestion(name, there)});
}

}  // namespace

const std::string& Kernel::name() const {
    return build().name;
}

const MappedKernel& Kernel::build() const {
    return state_->loaded->kernel;
}

const std::vector<std::string>& Kernel::warnings() const {
    return state_->warnings;
}

// Asks the dispatcher, which knows more of a loaded library than its strings show.
std::vector<std::string> Kernel::operators() const {
    std::vector<std::string> names;
    for (const runtime::OperatorFacts& op : runtime::operators_of(build().op_namespace)) {
        names.push_back(op.name);
    }
    return names;
}

std::vector<std::string> Kernel::layers() const {
    std::vector<std::string> names;
    for (const auto& layer :
         kernel::read_layers(runtime::package_sources(state_->loaded->sources)).layers) {
        names.push_back(layer.name);
    }
    return names;
}

std::vector<FunctionInfo> Kernel::functions() const {
    std::vector<FunctionInfo> list;
    for (const auto& function :
         kernel::read_functions(runtime::package_sources(state_->loaded->sources)).functions) {
        list.emplace_back(function.name, signature_of(function));
    }
    return list;
}

Implementation Kernel::op(const std::string& name) const {
    const auto there = operators();
    if (std::find(there.begin(), there.end(), name) == there.end()) {
        no_such("operator", name, this->name(), there);
    }
    return runtime::operator_named(build().op_namespace, name);
}

Implementation Kernel::function(const std::string& name) const {
    if (!state_->functions.has(name)) {
        std::vector<std::string> there;
        for (const FunctionInfo& function : functions()) {
            there.push_back(function.name());
        }
        no_such("function", name, this->name(), there);
    }
    return {this->name() + ": " + name,
            [state = state_, name](std::vector<c10::IValue> arguments,
                                   const Implementation::Keywords& keywords) {
                return state->functions.call(name, std::move(arguments), keywords);
            },
            std::nullopt, /*differentiable=*/false};
}

}  // namespace twinkle
