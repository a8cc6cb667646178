#pragma once
// The calls of Python functions that a trace has inlined, found by the stacks that its nodes keep.

#include "runtime/graph/stack_frames.h"
#include "twinkle/mapping.h"

#include <torch/script.h>

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twinkle::runtime {

// What a function of a model is called: the file of the module as it was traced ends in that of
// `target_module`.
struct TracedFunction {
    std::string target_module;  // "transformers.models.llama.modeling_llama"
    std::string func_name;

    std::string full_name() const { return target_module + "." + func_name; }
};

std::vector<TracedFunction> traced_functions(const Mapping& mapping);

// What a node is and where in the function: equal for the same place of two calls.
struct TraceLabel {
    c10::Symbol kind;
    std::uint32_t lines = 0;

    bool operator==(const TraceLabel&) const = default;
};

// Nodes of one call, or of several calls that nothing lies between, in the order of the graph.
// Nodes that a nested call of the function makes belong to the outer one.
struct TracedRun {
    std::size_t function = 0;  // which of those that were looked for
    // From where the function is called: equal for calls of one place (a loop, one line).
    std::uint32_t caller = 0;
    std::vector<torch::jit::Node*> nodes;
    std::vector<TraceLabel> labels;
};

// Looks at the stack of every node once, for all functions. Calls that stand in place of one of
// them are not calls of it.
class TracedCalls {
public:
    explicit TracedCalls(std::vector<TracedFunction> functions);

    // In the order of the graph, of its outermost block: a trace has no others.
    std::vector<TracedRun> in(torch::jit::Graph& graph);
    // Which of the functions are anywhere in a model.
    std::set<std::size_t> in(const torch::jit::Module& model);

    // Whether a node has been made by Python code, so that it is known where it belongs.
    bool has_stack(const torch::jit::Node* node) { return !stacks_.stack_of(node).empty(); }
    const std::vector<TracedFunction>& functions() const { return functions_; }

private:
    struct Place {
        std::size_t function;
        std::uint32_t caller, lines;
    };

    const std::vector<Place>& places_of(const std::vector<StackFrame>& stack);
    std::uint32_t number_of(const std::string& text);

    std::vector<TracedFunction> functions_;
    std::multimap<std::string, std::size_t> by_name_;  // bare names
    StackReader stacks_;
    std::unordered_map<const void*, std::vector<Place>> places_;  // by stack
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace twinkle::runtime
