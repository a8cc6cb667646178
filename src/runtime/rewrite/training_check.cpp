#include "runtime/rewrite/training_check.h"

#include "runtime/model/graph_walk.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

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

}  // namespace

std::optional<KeepReason> unfit_for_training(jit::Function& function) {
    const auto found = operators_without_autograd(function);
    if (found.empty()) {
        return std::nullopt;
    }
    return KeepReason{Fallback::no_compatible_mode,
                      *found.begin() +
                          " has no autograd kernel and is in no autograd.Function, so gradients "
                          "would be wrong"};
}

}  // namespace twinkle::runtime
