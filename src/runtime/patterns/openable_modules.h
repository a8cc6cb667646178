#pragma once
// Which modules a pattern may take apart: those that nothing else in a mapping is about.

#include "runtime/graph/function_calls.h"
#include "runtime/graph/sites.h"
#include "runtime/trace/traced_calls.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime {

// Depends on the model and the mapping alone, not on what is chosen: so places have the same names
// in the model as it came and in all that is made of it.
class OpenableModules {
public:
    // `calls`: of functions, in the model; may be none where the mapping has no functions and
    // nothing stands for one yet.
    OpenableModules(const Mapping& mapping, const std::vector<FunctionCall>& calls);

    // Not a module whose class has a binding, nor one whose method calls functions of the mapping
    // or what stands for them.
    bool contain(const Instance& instance, torch::jit::Function& method);

private:
    bool holds_traced_calls(torch::jit::Function& method);

    const Mapping& mapping_;
    std::set<std::string> callers_;  // paths
    TracedCalls calls_;
    std::unordered_map<const torch::jit::Function*, bool> traced_;
};

}  // namespace twinkle::runtime
