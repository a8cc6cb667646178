#include "runtime/rewrite/replacement.h"

#include "base/text.h"
#include "runtime/model/graph_walk.h"
#include "runtime/rewrite/forward_methods.h"
#include "runtime/rewrite/site_adapter.h"
#include "runtime/source/layer_compiler.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <functional>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

constexpr std::string_view method_prefix = "twinkle_";

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
    const std::string name = std::string(method_prefix) + request.layer + "_" + forward.name();
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

// A composite of other operators has their gradients; but what writes into its arguments is no
// composite, however it was registered.
bool has_autograd_kernel(const c10::OperatorHandle& op) {
    for (const auto key : {c10::DispatchKey::Autograd, c10::DispatchKey::AutogradCPU,
                           c10::DispatchKey::AutogradCUDA}) {
        if (op.hasKernelForDispatchKey(key)) {
            return true;
        }
    }
    return !op.schema().is_mutable() &&
           op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// LibTorch's own operators know their gradients; twinkle's take care of them.
bool is_foreign(const c10::Symbol& kind) {
    const std::string ns = kind.ns().toUnqualString();
    return ns != "aten" && ns != "prim" && ns != "twinkle";
}

// Operators of kernels that the function calls, through other functions too, without an autograd
// kernel. What an autograd.Function calls is out of sight here, and may.
std::set<std::string> operators_without_autograd(jit::Function& function) {
    std::set<std::string> found;
    std::set<const jit::Function*> seen;
    const std::function<void(jit::Function&)> scan = [&](jit::Function& one) {
        if (!seen.insert(&one).second) {
            return;
        }
        for_each_node(jit::toGraphFunction(one).graph()->block(), [&](const jit::Node* node) {
            if (node->kind() == c10::prim::CallFunction) {
                scan(*node->input(0)->type()->expectRef<c10::FunctionType>().function());
            } else if (is_foreign(node->kind())) {
                const auto* schema = node->maybeSchema();
                const std::string name = node->kind().toQualString();
                const auto op = c10::Dispatcher::singleton().findSchema(
                    {name, schema != nullptr ? schema->overload_name() : ""});
                if (!op || !has_autograd_kernel(*op)) {
                    found.insert(name);
                }
            }
        });
    };
    scan(function);
    return found;
}

std::optional<KeepReason> unfit_for_training(const std::vector<Edit>& edits,
                                             const ReplacementRequest& request) {
    for (const Edit& edit : edits) {
        if (!request.trains) {
            break;
        }
        const auto found = operators_without_autograd(*edit.method);
        if (!found.empty()) {
            return KeepReason{Fallback::no_compatible_mode,
                              *found.begin() +
                                  " has no autograd kernel and is in no autograd.Function, so "
                                  "gradients would be wrong"};
        }
    }
    return std::nullopt;
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
    if (auto unfit = unfit_for_training(edits, request)) {
        return give_up(std::move(*unfit));
    }
    for (const Edit& edit : edits) {
        apply(*edit.graph, edit.adapter, edit.placement, *edit.method);
    }
    return {};
}

bool is_kernelized(const jit::Module& module) {
    const auto& methods = module.type()->methods();
    return std::any_of(methods.begin(), methods.end(), [](const jit::Function* method) {
        return method->name().starts_with(method_prefix);
    });
}

}  // namespace twinkle::runtime
