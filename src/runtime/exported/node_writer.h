#pragma once
// Nodes of an exported graph, written into a graph of TorchScript.

#include "runtime/exported/origin.h"
#include "runtime/exported/program.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/named_value.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace twinkle::runtime::exported {

class NodeWriter {
public:
    // Values that no node here has defined are asked for from outside; nullptr: there is none.
    using Outside = std::function<torch::jit::Value*(const Argument&)>;

    // Writes at the insert point of the graph.
    NodeWriter(torch::jit::Graph& graph, const Graph& program, Origins& origins, Outside outside)
        : graph_(graph), program_(program), origins_(origins), outside_(std::move(outside)) {}

    // Throws Error(refused) for what TorchScript has no counterpart of, Error(not_found) for an
    // operator that is not there.
    void write(const Node& node);

    void define(const Argument& name, torch::jit::Value* value);
    // Throws Error(malformed).
    torch::jit::Value* value(const Argument& name);
    // A value or a literal, for a formal parameter of this type (nullptr: as it is).
    torch::jit::Value* argument(const Node& node, const Argument& argument,
                                const c10::TypePtr& formal);

private:
    torch::jit::Value* list(const Node& node, const Argument& argument, const c10::TypePtr& formal);
    torch::jit::Value* literal(const Node& node, const Argument& argument,
                               const c10::TypePtr& formal);
    torch::jit::Value* builtin(const Node& node, const std::string& name,
                               const std::vector<torch::jit::Value*>& arguments);
    // Gives the node's outputs their names.
    void define_outputs(const Node& node, const std::vector<torch::jit::Value*>& results);
    torch::jit::Value* as_kind(const Node& node, torch::jit::Value* value, Argument::Kind kind);

    void write_operator(const Node& node);
    torch::jit::Value* default_argument(const c10::Argument& formal);
    void call_operator(const Node& node, const std::string& name, const c10::FunctionSchema& schema,
                       const std::vector<torch::jit::NamedValue>& arguments,
                       const std::vector<torch::jit::NamedValue>& named);
    // Returns what the names stood for that stand for a cast tensor now.
    std::unordered_map<std::string, torch::jit::Value*> cast_inputs(const Node& node,
                                                                    at::ScalarType dtype);
    // TorchScript keeps operators that it takes for pure only where it sees an effect.
    void write_effect(const Node& node, const c10::FunctionSchema& schema,
                      const std::vector<torch::jit::Value*>& results);
    void write_method_call(const Node& node);
    void write_python_operator(const Node& node);
    void write_assertion(const Node& node);

    // Higher-order operators.
    void write_cond(const Node& node);
    void write_while_loop(const Node& node);
    void write_map(const Node& node);
    void write_scan(const Node& node);
    const Argument& positional(const Node& node, std::size_t index, Argument::Kind kind) const;
    std::vector<torch::jit::Value*> operands(const Node& node, std::size_t index);
    // The graph's outputs, computed of these at the insert point.
    std::vector<torch::jit::Value*> inlined(const Node& node, const Graph& graph,
                                            const std::vector<torch::jit::Value*>& inputs);
    std::vector<torch::jit::Value*> flat(const Node& node, std::vector<torch::jit::Value*> results);
    std::vector<torch::jit::Value*> over_first_dimension(
        const Node& node, const Graph& graph, const std::vector<torch::jit::Value*>& carried,
        const std::vector<torch::jit::Value*>& slices,
        const std::vector<torch::jit::Value*>& fixed);

    torch::jit::Graph& graph_;
    const Graph& program_;
    Origins& origins_;
    Outside outside_;
    std::unordered_map<std::string, torch::jit::Value*> values_;
};

}  // namespace twinkle::runtime::exported
