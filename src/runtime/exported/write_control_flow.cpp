// Higher-order operators: graphs that are arguments of a node become blocks.

#include "base/text.h"
#include "runtime/exported/node_writer.h"

#include <algorithm>
#include <limits>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;
using Kind = Argument::Kind;

const Argument& NodeWriter::positional(const Node& node, std::size_t index, Kind kind) const {
    if (index >= node.inputs.size() || node.inputs[index].value.kind != kind) {
        refuse_node(node, "its arguments are not those of this operator",
                    "use a twinkle that knows the PyTorch that it was exported with");
    }
    return node.inputs[index].value;
}

std::vector<jit::Value*> NodeWriter::operands(const Node& node, std::size_t index) {
    std::vector<jit::Value*> values;
    if (index < node.inputs.size()) {
        for (const Argument& item : positional(node, index, Kind::list).items) {
            values.push_back(argument(node, item, nullptr));
        }
    }
    return values;
}

std::vector<jit::Value*> NodeWriter::inlined(const Node& node, const Graph& graph,
                                             const std::vector<jit::Value*>& inputs) {
    if (inputs.size() != graph.inputs.size()) {
        refuse_node(node, "its graph does not take what it is given", "export the model again");
    }
    NodeWriter inside(graph_, graph, origins_, [](const Argument&) { return nullptr; });
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (graph.inputs[i].is_value()) {
            inside.define(graph.inputs[i], inputs[i]);
        }
    }
    for (const Node& one : graph.nodes) {
        inside.write(one);
    }
    std::vector<jit::Value*> outputs;
    for (const Argument& output : graph.outputs) {
        outputs.push_back(inside.argument(node, output, nullptr));
    }
    return outputs;
}

void NodeWriter::write_cond(const Node& node) {
    if (node.inputs.empty()) {
        refuse_node(node, "it has no condition", "export the model again");
    }
    jit::Value* condition =
        as_kind(node, argument(node, node.inputs.front().value, nullptr), Kind::sym_bool);
    const std::vector<jit::Value*> given = operands(node, 3);
    jit::Node* branches = graph_.insertNode(graph_.create(c10::prim::If, {condition}, 0));
    std::vector<c10::TypePtr> types;
    for (const std::size_t branch : {1, 2}) {
        const Graph& graph = *positional(node, branch, Kind::graph).graph;
        jit::Block* block = branches->addBlock();
        const jit::WithInsertPoint inside(block);
        const auto outputs = inlined(node, graph, given);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            if (branch == 1) {
                types.push_back(outputs[i]->type());
            }
            if (i >= types.size() || !(*types[i] == *outputs[i]->type())) {
                refuse_node(node, "its two graphs give different types", "let both give tensors");
            }
            block->registerOutput(outputs[i]);
        }
        if (outputs.size() != types.size()) {
            refuse_node(node, "its two graphs give different numbers of values",
                        "export the model again");
        }
    }
    std::vector<jit::Value*> results;
    for (const c10::TypePtr& type : types) {
        results.push_back(branches->addOutput()->setType(type));
    }
    define_outputs(node, flat(node, results));
}

// The test is asked before the loop and at the end of each round.
void NodeWriter::write_while_loop(const Node& node) {
    const Graph& test = *positional(node, 0, Kind::graph).graph;
    const Graph& body = *positional(node, 1, Kind::graph).graph;
    const std::vector<jit::Value*> carried = operands(node, 2);
    const std::vector<jit::Value*> fixed = operands(node, 3);
    const auto ask = [&](std::vector<jit::Value*> values) {
        values.insert(values.end(), fixed.begin(), fixed.end());
        const auto answer = inlined(node, test, values);
        if (answer.size() != 1) {
            refuse_node(node, "its test gives not one value", "export the model again");
        }
        return as_kind(node, answer.front(), Kind::sym_bool);
    };
    jit::Value* most = graph_.insertConstant(std::numeric_limits<std::int64_t>::max());
    std::vector<jit::Value*> inputs{most, ask(carried)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    jit::Node* loop = graph_.insertNode(graph_.create(c10::prim::Loop, inputs, 0));
    jit::Block* block = loop->addBlock();
    block->addInput()->setType(c10::IntType::get());
    std::vector<jit::Value*> values;
    for (const jit::Value* value : carried) {
        values.push_back(block->addInput()->setType(value->type()));
    }
    {
        const jit::WithInsertPoint inside(block);
        std::vector<jit::Value*> with_fixed = values;
        with_fixed.insert(with_fixed.end(), fixed.begin(), fixed.end());
        const auto next = inlined(node, body, with_fixed);
        if (next.size() != carried.size()) {
            refuse_node(node, "its body does not give what it takes", "export the model again");
        }
        block->registerOutput(ask(next));
        for (std::size_t i = 0; i < next.size(); ++i) {
            if (!(*next[i]->type() == *carried[i]->type())) {
                refuse_node(node, "its body gives another type than it takes",
                            "carry tensors from round to round");
            }
            block->registerOutput(next[i]);
        }
    }
    std::vector<jit::Value*> results;
    for (const jit::Value* value : carried) {
        results.push_back(loop->addOutput()->setType(value->type()));
    }
    define_outputs(node, flat(node, results));
}

namespace {

bool is_tensor(const jit::Value* value) {
    return value->type()->isSubtypeOf(*c10::TensorType::get());
}

}  // namespace

// A node says its results one by one, or as one list.
std::vector<jit::Value*> NodeWriter::flat(const Node& node, std::vector<jit::Value*> results) {
    if (node.outputs.size() == 1 && node.outputs.front().kind == Kind::list) {
        if (!std::all_of(results.begin(), results.end(), is_tensor)) {
            refuse_node(node, "it gives a list of something else than tensors",
                        "carry tensors from round to round");
        }
        return {graph_.insertNode(graph_.createList(c10::TensorType::get(), results))->output()};
    }
    return results;
}

std::vector<jit::Value*> NodeWriter::over_first_dimension(const Node& node, const Graph& graph,
                                                          const std::vector<jit::Value*>& carried,
                                                          const std::vector<jit::Value*>& slices,
                                                          const std::vector<jit::Value*>& fixed) {
    if (slices.empty() || graph.outputs.size() < carried.size()) {
        refuse_node(node, "it goes over nothing", "export the model again");
    }
    std::vector<jit::Value*> lists;
    for (std::size_t i = carried.size(); i < graph.outputs.size(); ++i) {
        lists.push_back(graph_.insertNode(graph_.createList(c10::TensorType::get(), {}))->output());
    }
    jit::Value* zero = graph_.insertConstant(0);
    std::vector<jit::Value*> inputs{builtin(node, "aten::size", {slices.front(), zero}),
                                    graph_.insertConstant(true)};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    jit::Node* loop = graph_.insertNode(graph_.create(c10::prim::Loop, inputs, 0));
    jit::Block* block = loop->addBlock();
    jit::Value* index = block->addInput()->setType(c10::IntType::get());
    std::vector<jit::Value*> values;
    for (const jit::Value* value : carried) {
        values.push_back(block->addInput()->setType(value->type()));
    }
    {
        const jit::WithInsertPoint inside(block);
        for (jit::Value* slice : slices) {
            values.push_back(
                builtin(node, "aten::select", {slice, graph_.insertConstant(0), index}));
        }
        values.insert(values.end(), fixed.begin(), fixed.end());
        const auto outputs = inlined(node, graph, values);
        for (std::size_t i = 0; i < lists.size(); ++i) {
            builtin(node, "aten::append",
                    {lists[i], as_kind(node, outputs[carried.size() + i], Kind::tensor)});
        }
        block->registerOutput(graph_.insertConstant(true));
        for (std::size_t i = 0; i < carried.size(); ++i) {
            if (!is_tensor(carried[i]) || !is_tensor(outputs[i])) {
                refuse_node(node, "it carries something else than tensors",
                            "carry tensors from round to round");
            }
            block->registerOutput(outputs[i]);
        }
    }
    std::vector<jit::Value*> results;
    for (const jit::Value* value : carried) {
        results.push_back(loop->addOutput()->setType(value->type()));
    }
    for (jit::Value* list : lists) {
        results.push_back(builtin(node, "aten::stack", {list, graph_.insertConstant(0)}));
    }
    return results;
}

void NodeWriter::write_map(const Node& node) {
    const Graph& graph = *positional(node, 0, Kind::graph).graph;
    define_outputs(node, flat(node, over_first_dimension(node, graph, {}, operands(node, 1),
                                                         operands(node, 2))));
}

void NodeWriter::write_scan(const Node& node) {
    const Graph& graph = *positional(node, 0, Kind::graph).graph;
    define_outputs(node, flat(node, over_first_dimension(node, graph, operands(node, 1),
                                                         operands(node, 2), operands(node, 3))));
}

}  // namespace twinkle::runtime::exported
