// Operators of the dispatcher.

#include "base/text.h"
#include "runtime/exported/autocast.h"
#include "runtime/exported/node_writer.h"
#include "runtime/model/unknown_operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/frontend/schema_matching.h>

#include <algorithm>
#include <map>
#include <set>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;
using Kind = Argument::Kind;

namespace {

struct OperatorTarget {
    std::string name;  // "aten::add"
    std::string overload;
};

// "torch.ops.aten.add.Tensor"
OperatorTarget read_target(const Node& node) {
    const auto parts = base::split(node.target, '.');
    if (parts.size() != 5) {
        refuse_node(node, "it names no operator", "export the model again");
    }
    return {parts[2] + "::" + parts[3], parts[4] == "default" ? "" : parts[4]};
}

c10::OperatorHandle find_operator(const Node& node, const OperatorTarget& target) {
    const auto found = c10::Dispatcher::singleton().findSchema({target.name, target.overload});
    if (!found) {
        refuse_unknown_operator(target.name, base::printable(node.name.substr(0, 200)));
    }
    return *found;
}

// Sizes of tensors, which TorchScript calls otherwise.
const std::string& scripted_name(const std::string& name) {
    static const std::map<std::string, std::string> names = {
        {"aten::sym_size", "aten::size"},
        {"aten::sym_stride", "aten::stride"},
        {"aten::sym_numel", "aten::numel"},
        {"aten::sym_storage_offset", "aten::storage_offset"},
    };
    const auto found = names.find(name);
    return found == names.end() ? name : found->second;
}

// The argument for one of the schema, by its name or, where it has none, its position.
const Argument* given_for(const Node& node, const c10::FunctionSchema& schema, std::size_t index) {
    const std::string& name = schema.arguments()[index].name();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].name == name || (node.inputs[i].name.empty() && i == index)) {
            return &node.inputs[i].value;
        }
    }
    return nullptr;
}

void check_names(const Node& node, const c10::FunctionSchema& schema) {
    for (const NamedArgument& input : node.inputs) {
        if (!input.name.empty() && !schema.argumentIndexWithName(input.name)) {
            refuse_node(node, "LibTorch's operator has no argument " + base::printable(input.name),
                        "use the PyTorch that the model was exported with");
        }
    }
    if (node.inputs.size() > schema.arguments().size()) {
        refuse_node(node, "LibTorch's operator has less arguments",
                    "use the PyTorch that the model was exported with");
    }
}

// The saved code names no overloads: the one that its arguments choose must mean the same. A number
// in the place of a tensor does, and a list of tensors in the place of one of optional tensors.
bool means_the_same(const Node& node, const c10::FunctionSchema& asked,
                    const c10::FunctionSchema& chosen) {
    if (chosen.overload_name() == asked.overload_name() ||
        chosen.overload_name().ends_with("hacked_twin")) {
        return true;
    }
    bool has_number = false;
    for (std::size_t i = 0; i < asked.arguments().size(); ++i) {
        const Argument* given = given_for(node, asked, i);
        has_number =
            has_number || (given != nullptr && given->kind != Kind::tensor &&
                           given->kind != Kind::none && given->kind != Kind::list &&
                           asked.arguments()[i].type()->kind() == c10::TypeKind::TensorType);
    }
    return has_number && chosen.returns().size() == asked.returns().size();
}

// TorchScript leaves out what has no results and writes nothing, whatever else it does. Of checks
// that is known: those of sizes are made of what the archive says, others were never promised.
void refuse_mere_effect(const Node& node, const OperatorTarget& target,
                        const c10::FunctionSchema& schema) {
    if (schema.returns().empty() && !schema.is_mutable() &&
        schema.aliasAnalysis() != c10::AliasAnalysisKind::CONSERVATIVE &&
        !target.name.starts_with("aten::_assert") &&
        !target.name.starts_with("aten::sym_constrain")) {
        refuse_node(node,
                    base::printable(target.name) +
                        " has no result, and TorchScript leaves out what has none",
                    "export the model without it, or let it return a tensor that is used");
    }
}

std::string first_sentence(const std::string& text) {
    for (const std::string& line : base::split(text, '\n')) {
        if (line.find_first_not_of(' ') != std::string::npos) {
            return base::printable(line.substr(0, 300));
        }
    }
    return "";
}

// The names of the floating point tensors that autocast would cast.
void add_cast(const Argument& argument, const Graph& graph, at::ScalarType dtype,
              std::set<std::string>& into) {
    const auto meta = graph.tensors.find(argument.text);
    if (argument.kind == Kind::tensor && meta != graph.tensors.end() && meta->second.dtype &&
        may_be_cast(*meta->second.dtype) && *meta->second.dtype != dtype) {
        into.insert(argument.text);
    }
    for (const Argument& item : argument.items) {
        add_cast(item, graph, dtype, into);
    }
}

}  // namespace

std::unordered_map<std::string, jit::Value*> NodeWriter::cast_inputs(const Node& node,
                                                                     at::ScalarType dtype) {
    std::set<std::string> names;
    for (const NamedArgument& input : node.inputs) {
        add_cast(input.value, program_, dtype, names);
    }
    std::unordered_map<std::string, jit::Value*> before;
    for (const std::string& name : names) {
        Argument tensor;
        tensor.kind = Kind::tensor;
        tensor.text = name;
        before[name] = value(tensor);
        jit::Value* no = graph_.insertConstant(false);
        values_[name] =
            builtin(node, "aten::to",
                    {before[name], graph_.insertConstant(static_cast<std::int64_t>(dtype)), no, no,
                     graph_.insertNode(graph_.createNone())->output()});
    }
    return before;
}

void NodeWriter::call_operator(const Node& node, const std::string& name,
                               const c10::FunctionSchema& schema,
                               const std::vector<jit::NamedValue>& arguments,
                               const std::vector<jit::NamedValue>& named) {
    const auto symbol = c10::Symbol::fromQualString(name);
    jit::Value* result = nullptr;
    try {
        result = jit::emitBuiltinCall(origins_.range_of(node), graph_, symbol, arguments, named);
    } catch (const std::exception& error) {
        refuse_node(node,
                    "TorchScript does not take its arguments: " + first_sentence(error.what()),
                    "save ep.run_decompositions() instead of ep, or use the PyTorch that it was "
                    "exported with");
    }
    std::vector<jit::Value*> results{result};
    jit::Node* made = result->node();
    if (made->kind() == c10::prim::TupleConstruct) {
        results.assign(made->inputs().begin(), made->inputs().end());
        made->destroy();
        made = results.empty() ? nullptr : results.front()->node();
    }
    const c10::FunctionSchema* chosen = made == nullptr ? nullptr : made->maybeSchema();
    if (chosen != nullptr && !means_the_same(node, schema, *chosen)) {
        refuse_node(node,
                    "TorchScript would take another operator for its arguments: " +
                        base::printable(c10::toString(chosen->operator_name())),
                    "save ep.run_decompositions() instead of ep");
    }
    write_effect(node, schema, results);
    define_outputs(node, results);
}

jit::Value* NodeWriter::default_argument(const c10::Argument& formal) {
    const c10::IValue& value = *formal.default_value();
    if (value.isNone()) {
        return graph_.insertNode(graph_.createNone())->output();
    }
    return graph_.insertConstant(value);
}

void NodeWriter::write_operator(const Node& node) {
    const OperatorTarget target = read_target(node);
    const c10::OperatorHandle op = find_operator(node, target);
    const c10::FunctionSchema& schema = op.schema();
    check_names(node, schema);
    refuse_mere_effect(node, target, schema);
    if (target.name == "aten::item" || target.name == "aten::_local_scalar_dense") {
        define_outputs(node, {argument(node, node.inputs.at(0).value, nullptr)});
        return;
    }
    const auto cast = node.autocast ? autocast_dtype(node, program_, op) : std::nullopt;
    const auto before = cast ? cast_inputs(node, *cast) : decltype(values_)();
    std::vector<jit::NamedValue> arguments;
    std::vector<jit::NamedValue> named;
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
        const c10::Argument& formal = schema.arguments()[i];
        const Argument* given = given_for(node, schema, i);
        if (given == nullptr && !formal.default_value()) {
            refuse_node(node, "it lacks the argument " + base::printable(formal.name()),
                        "use the PyTorch that the model was exported with");
        }
        jit::Value* actual =
            given == nullptr ? default_argument(formal) : argument(node, *given, formal.type());
        if (formal.kwarg_only()) {
            named.emplace_back(formal.name(), actual);
        } else {
            arguments.emplace_back(actual);
        }
    }
    for (const auto& [name, value] : before) {
        values_[name] = value;
    }
    call_operator(node, scripted_name(target.name), schema, arguments, named);
}

}  // namespace twinkle::runtime::exported
