#include "runtime/layers/replacement.h"

#include "base/text.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/layers/site_adapter.h"
#include "runtime/source/layer_compiler.h"

#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

struct Edit {
    std::shared_ptr<jit::Graph> graph;
    Adapter adapter;
    Placement placement;
    jit::Function* method = nullptr;
};

// A forward may do more than return something, and what it does would be lost.
std::optional<std::string> lost_effects(jit::Function& forward, jit::Function& layer) {
    std::set<std::string> lost = written_values(forward);
    for (const std::string& kept : written_values(layer)) {
        lost.erase(kept);
    }
    if (lost.empty()) {
        return std::nullopt;
    }
    return "its forward also changes its " +
           base::join(std::vector(lost.begin(), lost.end()), ", ") + ", which the layer does not";
}

tl::expected<Edit, std::string> prepare(const c10::ClassTypePtr& type, jit::Function& forward,
                                        Compilation& compilation,
                                        const ReplacementRequest& request) {
    const auto parameters = layer_parameters(compilation.package(), request.layer);
    if (!parameters) {
        return tl::make_unexpected(parameters.error());
    }
    Edit edit;
    edit.graph = jit::toGraphFunction(forward).graph();
    const auto passed = request.passed.find(forward.name());
    auto adapter = fit(*edit.graph, *parameters,
                       passed == request.passed.end() ? PassedInputs{} : passed->second);
    if (!adapter) {
        return tl::make_unexpected(adapter.error());
    }
    edit.adapter = std::move(*adapter);
    const std::string name = name_of_kernel_method(request.layer, forward.name());
    auto method = compile_layer(compilation, request.layer, type, name, edit.adapter.signature(),
                                request.host);
    if (!method) {
        return tl::make_unexpected(method.error());
    }
    edit.method = *method;
    if (auto lost = lost_effects(forward, *edit.method)) {
        remove_method(type, name);
        return tl::make_unexpected(*std::move(lost));
    }
    const auto placement = place(*edit.graph, edit.adapter, *edit.method);
    if (!placement) {
        remove_method(type, name);
        return tl::make_unexpected(placement.error());
    }
    edit.placement = *placement;
    return edit;
}

}  // namespace

tl::expected<void, KeepReason> replace_forward(const c10::ClassTypePtr& type,
                                               Compilation& compilation,
                                               const ReplacementRequest& request) {
    const auto forwards = forward_methods(type);
    std::vector<Edit> edits;
    const auto give_up = [&](KeepReason reason) {
        for (const Edit& done : edits) {
            remove_method(type, done.method->name());
        }
        return tl::make_unexpected(std::move(reason));
    };
    if (forwards.empty()) {
        return give_up({Fallback::cannot_compile,
                        "the saved instance has no forward: nothing calls it under this name"});
    }
    for (jit::Function* forward : forwards) {
        auto edit = prepare(type, *forward, compilation, request);
        if (!edit) {
            return give_up({Fallback::cannot_compile, edit.error()});
        }
        edits.push_back(std::move(*edit));
    }
    for (const Edit& edit : edits) {
        if (auto unusable = unusable_operator(*edit.method, request.use)) {
            return give_up(*std::move(unusable));
        }
    }
    for (const Edit& edit : edits) {
        apply(*edit.graph, edit.adapter, edit.placement, *edit.method);
    }
    return {};
}

}  // namespace twinkle::runtime
