#pragma once
// Tracing drops the attributes of a module (its epsilon, say) but leaves their values as constants
// in its graph, or as shapes of its parameters. Which constant is which attribute is a rule, and
// the rules are data in tables.

#include "runtime/graph/passed_parameters.h"

#include <torch/script.h>

#include <map>
#include <string>

namespace twinkle::runtime {

struct LostAttributes {
    std::map<std::string, c10::IValue> values;
    // Attributes that the rules would have found, but must not tell, with the reason.
    std::map<std::string, std::string> withheld;
};

// What the rules find, by name, in all forward methods of the module. Two different values for one
// attribute, or none: not found, never guessed. `passed`: by method, its inputs that are the
// module's own parameters (PassedParameters of the whole model).
LostAttributes lost_attributes(const torch::jit::Module& module,
                               const std::map<std::string, PassedInputs>& passed);

// The same for one graph, without what only the module's parameters tell.
LostAttributes lost_attributes(const torch::jit::Graph& graph);

}  // namespace twinkle::runtime
