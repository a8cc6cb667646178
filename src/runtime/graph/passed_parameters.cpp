#include "runtime/graph/passed_parameters.h"

#include "runtime/graph/forward_methods.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// The name of the instance's own tensor that this one is.
std::string name_in(const jit::Module& instance, const at::Tensor& tensor) {
    for (std::size_t i = 0; i < instance.type()->numAttributes(); ++i) {
        const c10::IValue& own = instance._ivalue()->getSlot(i);
        if (own.isTensor() && is_same_parameter(own.toTensor(), tensor)) {
            return instance.type()->getAttributeName(i);
        }
    }
    return "";
}

}  // namespace

PassedInputs PassedParameters::of(const jit::Module& instance, const std::string& method) const {
    PassedInputs inputs;
    const auto found = calls_.methods.find({instance._ivalue().get(), method});
    for (std::size_t i = 1; found != calls_.methods.end() && i < found->second.size(); ++i) {
        if (found->second[i].defined()) {
            inputs.emplace(i, name_in(instance, found->second[i]));
        }
    }
    return inputs;
}

std::map<std::string, PassedInputs> PassedParameters::of(const jit::Module& instance) const {
    std::map<std::string, PassedInputs> passed;
    for (const jit::Function* method : forward_methods(instance.type())) {
        passed[method->name()] = of(instance, method->name());
    }
    return passed;
}

}  // namespace twinkle::runtime
