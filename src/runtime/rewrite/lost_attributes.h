#pragma once
// Tracing drops the attributes of a module (its epsilon, say) but leaves their values as constants
// in its graph. Which constant is which attribute is a rule, and the rules are data in one table.

#include <torch/script.h>

#include <map>
#include <string>

namespace twinkle::runtime {

// The attributes that the rules find in this graph, by name. Two different values for one
// attribute, or none: not found, never guessed.
std::map<std::string, c10::IValue> lost_attributes(torch::jit::Graph& graph);

}  // namespace twinkle::runtime
