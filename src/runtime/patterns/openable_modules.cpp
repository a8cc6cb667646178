#include "runtime/patterns/openable_modules.h"

#include "runtime/selection/selection.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

OpenableModules::OpenableModules(const Mapping& mapping, const std::vector<FunctionCall>& calls)
    : mapping_(mapping), calls_(traced_functions(mapping)) {
    for (const FunctionCall& call : calls) {
        const bool named =
            call.replaced ||
            std::any_of(mapping.functions.begin(), mapping.functions.end(),
                        [&](const auto& one) { return one.full_name() == call.function; });
        if (named && !call.in_function) {
            callers_.insert(call.path);
        }
    }
}

bool OpenableModules::contain(const Instance& instance, jit::Function& method) {
    return !callers_.contains(instance.path) &&
           std::none_of(
               mapping_.layers.begin(), mapping_.layers.end(),
               [&](const MappedLayer& layer) { return binds(layer, instance.class_name); }) &&
           !holds_traced_calls(method);
}

bool OpenableModules::holds_traced_calls(jit::Function& method) {
    if (mapping_.functions.empty()) {
        return false;
    }
    const auto [known, first] = traced_.try_emplace(&method, false);
    if (first) {
        known->second = !calls_.in(*jit::toGraphFunction(method).graph()).empty();
    }
    return known->second;
}

}  // namespace twinkle::runtime
