#include "runtime/graph/past_runs.h"

#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// What a function was optimized to can be cleared, but not its executor, which is what runs. A
// function made anew in its place would leave every torch::jit::Method that somebody holds without
// one. So the private member is named, in the one way that the language allows: an explicit
// instantiation.
auto& executors_of(jit::GraphFunction& function);

template <auto Member>
struct Reveal {
    friend auto& executors_of(jit::GraphFunction& function) { return function.*Member; }
};
template struct Reveal<&jit::GraphFunction::executors_>;

void forget(const std::vector<jit::Function*>& functions) {
    for (jit::Function* one : functions) {
        if (auto* function = jit::tryToGraphFunction(*one)) {
            function->clear_optimized_graphs();
            for (auto& executor : executors_of(*function)) {
                executor.reset();
            }
        }
    }
}

}  // namespace

void discard_past_runs(const jit::Module& root) {
    std::unordered_set<const void*> seen;
    for (const Instance& instance : instances_of(root)) {
        const auto type = instance.module.type();
        if (seen.insert(type.get()).second) {
            forget(type->methods());
            forget(type->getForwardPreHooks());
            forget(type->getForwardHooks());
        }
    }
    // A function keeps what it was inlined as, too.
    for (const FunctionCall& call : function_calls(root)) {
        forget({call.caller, &call.callee()});
    }
}

}  // namespace twinkle::runtime
