#pragma once
// Finds calls of Python functions that a trace has inlined, by the stacks of its nodes.

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

// A function's name in a model: the path of the traced module's file ends in that of
// `target_module`.
struct TracedFunction {
    std::string target_module;  // "transformers.models.llama.modeling_llama"
    std::string func_name;

    std::string full_name() const { return target_module + "." + func_name; }
};

std::vector<TracedFunction> traced_functions(const Mapping& mapping);

// A node's operation and place in the function: equal for the same place of two calls.
struct TraceLabel {
    c10::Symbol kind;
    std::uint32_t lines = 0;

    bool operator==(const TraceLabel&) const = default;
};

// Nodes of one call, or of several adjacent calls, in the order of the graph. Nodes of a nested
// call of the same function belong to the outer one.
struct TracedRun {
    std::size_t function = 0;  // which of those that were looked for
    // The caller's place: equal for calls from one place (a loop, one line).
    std::uint32_t caller = 0;
    std::vector<torch::jit::Node*> nodes;
    std::vector<TraceLabel> labels;
};

// Reads the stack of every node once, for all functions. Calls that have replaced one of them are
// not calls of it.
class TracedCalls {
public:
    explicit TracedCalls(std::vector<TracedFunction> functions);

    // Returns them in the order of the graph's outermost block: a trace has no other blocks.
    std::vector<TracedRun> in(torch::jit::Graph& graph);
    // The functions that occur anywhere in a model.
    std::set<std::size_t> in(const torch::jit::Module& model);

    // Whether Python code has made the node, so that its origin is known.
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
