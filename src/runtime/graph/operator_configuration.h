#pragma once
// Configurations of operators in code: keyword arguments with defaults, which a call that is tuned
// gets other values for.

#include "twinkle/tuning_config.h"

#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <vector>

namespace twinkle::runtime {

// The operators of a namespace that the code calls, in its order, each once, without the namespace.
std::vector<std::string> operators_called(torch::jit::Graph& graph,
                                          const std::string& op_namespace);

// The keyword arguments of an operator with what they are where a call does not give them:
// integers, numbers, texts and truths. Of one that is not registered, or has no such: nothing.
CfgFields keyword_defaults(const std::string& op_namespace, const std::string& name);

// Inlines what the graph calls, and gives every operator of the namespace the values of the keyword
// arguments that it has of these. Whether each was given to one; else the graph is of no use.
bool configure_operators(torch::jit::Graph& graph, const std::string& op_namespace,
                         const CfgFields& cfg);

}  // namespace twinkle::runtime
