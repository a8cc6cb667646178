#include "runtime/layers/operator_check.h"

#include "runtime/graph/graph_walk.h"
#include "runtime/kernels/operator_facts.h"
#include "runtime/model/program_function.h"

#include <functional>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// LibTorch's own operators have kernels everywhere and know their gradients; twinkle's take care of
// them. Whether a function of the program has any is known by its implementation.
bool is_foreign(const c10::Symbol& kind) {
    const std::string ns = kind.ns().toUnqualString();
    return ns != "aten" && ns != "prim" && ns != "twinkle" && ns != program_namespace;
}

bool is_always_run(const jit::Node* node) {
    return node->owningBlock() == node->owningGraph()->block();
}

struct Call {
    std::string name;
    std::optional<OperatorFacts> facts;  // none: nothing is known
    bool always = false;                 // whichever way the code takes
};

// Operators of kernels that the function calls, through other functions too. What an
// autograd.Function calls is out of sight here.
std::vector<Call> operator_calls(jit::Function& function) {
    std::vector<Call> calls;
    std::set<std::pair<const jit::Function*, bool>> seen;
    const std::function<void(jit::Function&, bool)> scan = [&](jit::Function& one, bool always) {
        if (!seen.emplace(&one, always).second) {
            return;
        }
        for_each_node(jit::toGraphFunction(one).graph()->block(), [&](const jit::Node* node) {
            const bool run = always && is_always_run(node);
            if (node->kind() == c10::prim::CallFunction) {
                scan(*node->input(0)->type()->expectRef<c10::FunctionType>().function(), run);
            } else if (is_foreign(node->kind())) {
                const auto* schema = node->maybeSchema();
                const std::string name = node->kind().toQualString();
                calls.push_back(
                    {name, known_facts({name, schema != nullptr ? schema->overload_name() : ""}),
                     run});
            }
        });
    };
    scan(function, true);
    return calls;
}

bool lacks_kernel(const Call& call, const std::string& device) {
    const std::string type = device.substr(0, device.find(':'));
    return call.always && call.facts &&
           ((type == "cpu" && !call.facts->cpu) || (type == "cuda" && !call.facts->cuda));
}

}  // namespace

bool has_autograd_kernel(const c10::OperatorName& name) {
    const auto facts = known_facts(name);
    return facts && facts->autograd;
}

std::optional<KeepReason> unusable_operator(jit::Function& function, const OperatorUse& use) {
    for (const Call& call : operator_calls(function)) {
        if (lacks_kernel(call, use.device)) {
            return KeepReason{Fallback::no_device, call.name + " has no kernel for " + use.device};
        }
        if (use.trains && !(call.facts && call.facts->autograd)) {
            return KeepReason{
                Fallback::no_compatible_mode,
                call.name +
                    " has no autograd kernel and is in no autograd.Function, so gradients would be "
                    "wrong"};
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
