#include "runtime/rewrite/replacement.h"

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

// A traced instance that is called several times has forward, forward1, forward2, …
std::vector<jit::Function*> forward_methods(const c10::ClassTypePtr& type) {
    std::vector<jit::Function*> found;
    for (jit::Function* method : type->methods()) {
        const std::string& name = method->name();
        if (name.starts_with("forward") &&
            std::all_of(name.begin() + 7, name.end(),
                        [](unsigned char c) { return std::isdigit(c); })) {
            found.push_back(method);
        }
    }
    return found;
}

struct Edit {
    std::shared_ptr<jit::Graph> graph;
    Adapter adapter;
    Placement placement;
    jit::Function* method = nullptr;
};

tl::expected<Edit, std::string> prepare(const c10::ClassTypePtr& type, jit::Function& forward,
                                        Compilation& compilation, const std::string& layer,
                                        const AttributeMap& supplied) {
    const auto parameters = layer_parameters(compilation.package(), layer);
    if (!parameters) {
        return tl::make_unexpected(parameters.error());
    }
    Edit edit;
    edit.graph = jit::toGraphFunction(forward).graph();
    auto adapter = fit(*edit.graph, *parameters);
    if (!adapter) {
        return tl::make_unexpected(adapter.error());
    }
    edit.adapter = std::move(*adapter);
    const std::string name = std::string(method_prefix) + layer + "_" + forward.name();
    auto method = compile_layer(compilation, layer, type, name, edit.adapter.input_types, supplied);
    if (!method) {
        return tl::make_unexpected(method.error());
    }
    edit.method = *method;
    const auto placement = place(*edit.graph, edit.adapter, *edit.method);
    if (!placement) {
        remove_method(type, name);
        return tl::make_unexpected(placement.error());
    }
    edit.placement = *placement;
    return edit;
}

void visit_nodes(const jit::Block* block, const std::function<void(const jit::Node*)>& visit) {
    for (const jit::Node* node : block->nodes()) {
        visit(node);
        for (const jit::Block* inner : node->blocks()) {
            visit_nodes(inner, visit);
        }
    }
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
        visit_nodes(jit::toGraphFunction(one).graph()->block(), [&](const jit::Node* node) {
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
        return give_up({Fallback::cannot_compile, "the saved instance has no forward of its own"});
    }
    for (jit::Function* forward : forwards) {
        auto edit = prepare(type, *forward, compilation, request.layer, request.supplied);
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
