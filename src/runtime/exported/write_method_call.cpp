// Calls of objects of torch.classes, and what else has effects.

#include "base/text.h"
#include "runtime/exported/node_writer.h"
#include "runtime/exported/plain_pickle.h"
#include "runtime/model/effect.h"
#include "runtime/model/io_operators.h"

#include <torch/csrc/jit/frontend/schema_matching.h>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;
using Kind = Argument::Kind;

namespace {

// LibTorch computes with such a class: its operators are pure.
bool is_libtorchs(const c10::TypePtr& type) {
    const auto object = type->cast<c10::ClassType>();
    const std::string name = object && object->name() ? object->name()->qualifiedName() : "";
    return name.starts_with(torch_classes_prefix) &&
           !class_unfit_for_loading(name.substr(torch_classes_prefix.size()));
}

// The type of an argument by its place or, where it has a name, by that.
c10::TypePtr formal_of(const c10::FunctionSchema& schema, const NamedArgument& input,
                       std::size_t place) {
    for (const c10::Argument& one : schema.arguments()) {
        if (!input.name.empty() && one.name() == input.name) {
            return one.type();
        }
    }
    return input.name.empty() && place < schema.arguments().size()
               ? schema.arguments()[place].type()
               : nullptr;
}

}  // namespace

// call_torchbind(object, "method", arguments…)
void NodeWriter::write_method_call(const Node& node) {
    jit::Value* object = value(positional(node, 0, Kind::object));
    const std::string& name = positional(node, 1, Kind::string).text;
    const auto type = object->type()->cast<c10::ClassType>();
    const jit::Function* method = type ? type->findMethod(name) : nullptr;
    if (method == nullptr || name.starts_with("__")) {
        refuse_node(node,
                    "the class of the object has no method " + base::printable(name.substr(0, 200)),
                    "use the library that the model was exported with");
    }
    const c10::FunctionSchema& schema = method->getSchema();
    std::vector<jit::NamedValue> arguments{jit::NamedValue(object)};
    std::vector<jit::NamedValue> named;
    for (std::size_t i = 2; i < node.inputs.size(); ++i) {
        const NamedArgument& input = node.inputs[i];
        jit::Value* actual = argument(node, input.value, formal_of(schema, input, i - 1));
        if (input.name.empty()) {
            arguments.emplace_back(actual);
        } else {
            named.emplace_back(input.name, actual);
        }
    }
    jit::Value* result = nullptr;
    try {
        const auto matched =
            jit::matchSchema(schema, origins_.range_of(node), graph_, arguments, named);
        result = graph_.insertMethodCall(name, matched);
    } catch (const std::exception&) {
        refuse_node(node, "the method " + base::printable(name) + " takes other arguments",
                    "use the library that the model was exported with");
    }
    std::vector<jit::Value*> results{result};
    if (result->type()->kind() == c10::TypeKind::TupleType && node.outputs.size() != 1) {
        const auto parts = graph_.insertNode(graph_.createTupleUnpack(result))->outputs();
        results.assign(parts.begin(), parts.end());
    }
    define_outputs(node, results);
}

void NodeWriter::write_effect(const Node& node, const c10::FunctionSchema& schema,
                              const std::vector<jit::Value*>& results) {
    if (schema.is_mutable() || schema.aliasAnalysis() == c10::AliasAnalysisKind::CONSERVATIVE) {
        return;  // LibTorch knows
    }
    std::vector<jit::Value*> objects;
    bool foreign = false;
    for (const NamedArgument& input : node.inputs) {
        if (input.value.kind == Kind::object) {
            objects.push_back(value(input.value));
            foreign = foreign || !is_libtorchs(objects.back()->type());
        }
    }
    if (!foreign && (!node.has_effects || !objects.empty())) {
        return;
    }
    for (jit::Value* one : results) {
        write_effect_of(graph_, one);
    }
    for (jit::Value* one : objects) {
        write_effect_of(graph_, one);
    }
}

}  // namespace twinkle::runtime::exported
