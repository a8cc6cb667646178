#pragma once
// Types in a graph follow from the classes of the modules that flow through it: after a class has
// changed, so have they.

#include <torch/csrc/jit/ir/ir.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace twinkle::runtime {

// What a hook of a class is called on a clone of that class: (hook, clone) → hook of the clone.
using HookClones =
    std::map<std::pair<const torch::jit::Function*, const c10::ClassType*>, torch::jit::Function*>;

struct RetypingProblem {
    c10::ClassTypePtr type;  // of the value that cannot have another class
    std::string because;
};

// Gives the graph's first input this type, and every value that depends on it, or on an attribute
// whose type has changed, the type that it now has. On a problem the graph is half done.
std::optional<RetypingProblem> retype(torch::jit::Graph& graph, const c10::ClassTypePtr& self,
                                      const HookClones& hooks);

}  // namespace twinkle::runtime
