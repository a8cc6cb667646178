#pragma once
// What is written in one way in a flat graph: the rules for single operators.

#include "runtime/patterns/flat_builder.h"

#include <optional>
#include <string>

namespace twinkle::runtime {

// How an operator appears: as another value, as an element of a list or tuple, as a number, or as a
// flat node with these inputs.
struct Normal {
    torch::jit::Value* alias = nullptr;
    std::optional<std::int64_t> part;
    std::optional<c10::IValue> constant;
    c10::Symbol op;
    c10::SmallVector<torch::jit::Value*, 4> inputs;
    bool merges_input = false;  // the node of the first input is part of this one
    // Inputs that stand for another constant than what is written: None, in a slice.
    std::vector<std::pair<std::size_t, c10::IValue>> literals;
    bool is_in_place = false;  // the op is what it would be if it did not write into its input
    // A number of sizes and numbers, be it written as a tensor: the same wherever it is computed.
    bool is_number = false;
};

// The values of a graph as those of the flat graph that is being made.
struct FlatView {
    struct Seen {
        const FlatGraph& graph;
        ValueId id;
    };

    FlatBuilder& to;
    std::int32_t frame;

    Seen operator()(torch::jit::Value* value) const { return {to.graph, to.known(frame, value)}; }
};

Normal normal_form(const torch::jit::Node* node, const FlatView& view);

// Functions of torch.nn.functional that scripted code calls, as the operator that they come to.
struct FunctionalOperator {
    c10::Symbol op;
    std::vector<std::size_t> arguments;
    std::vector<std::size_t> switched_off;  // arguments that must be False
    std::vector<std::size_t> integers;      // arguments that must be integers
    std::optional<std::size_t> in_place;    // the argument that asks for it: True or False
    std::vector<std::pair<std::size_t, double>> numbers{};  // arguments that must be these
};
const FunctionalOperator* functional_operator(const std::string& name);

bool is_false(const FlatGraph& graph, ValueId id);
bool is_true(const FlatGraph& graph, ValueId id);
bool is_integer(const FlatGraph& graph, ValueId id);
bool is_number(const FlatGraph& graph, ValueId id, double number);

// A tensor without dimensions as what a program writes: a trace makes tensors of Python's numbers.
std::optional<c10::IValue> as_number(const at::Tensor& tensor);

}  // namespace twinkle::runtime
