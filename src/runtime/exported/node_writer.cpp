#include "runtime/exported/node_writer.h"

#include "base/text.h"
#include "runtime/exported/checks.h"
#include "runtime/exported/python_operators.h"
#include "twinkle/error.h"

#include <torch/csrc/jit/frontend/schema_matching.h>

#include <map>

namespace twinkle::runtime::exported {

namespace jit = torch::jit;
using Kind = Argument::Kind;

namespace {

constexpr std::string_view operator_prefix = "torch.ops.";
constexpr std::string_view higher_order_prefix = "torch.ops.higher_order.";

c10::TypePtr without_optional(const c10::TypePtr& type) {
    if (type != nullptr) {
        if (const auto optional = type->cast<c10::OptionalType>()) {
            return optional->getElementType();
        }
    }
    return type;
}

bool wants(const c10::TypePtr& formal, c10::TypeKind kind) {
    return formal != nullptr && formal->kind() == kind;
}

}  // namespace

void NodeWriter::define(const Argument& name, jit::Value* value) {
    values_[name.text] = value;
}

jit::Value* NodeWriter::value(const Argument& name) {
    const auto known = values_.find(name.text);
    if (known != values_.end()) {
        return known->second;
    }
    jit::Value* found = outside_(name);
    if (found == nullptr) {
        throw Error(ErrorCode::malformed, {.what = "the exported program cannot be converted",
                                           .where = base::printable(name.text),
                                           .why = "this value is not there where it is used",
                                           .hint = "export the model again"});
    }
    values_[name.text] = found;
    return found;
}

jit::Value* NodeWriter::literal(const Node& node, const Argument& argument,
                                const c10::TypePtr& formal) {
    switch (argument.kind) {
        case Kind::none: return graph_.insertNode(graph_.createNone())->output();
        case Kind::integer:
            return wants(formal, c10::TypeKind::FloatType)
                       ? graph_.insertConstant(static_cast<double>(argument.integer))
                       : graph_.insertConstant(argument.integer);
        case Kind::boolean:
            return formal == nullptr || wants(formal, c10::TypeKind::BoolType)
                       ? graph_.insertConstant(argument.integer != 0)
                       : graph_.insertConstant(argument.integer);
        case Kind::number: return graph_.insertConstant(argument.number);
        case Kind::complex:
            return graph_.insertConstant(c10::complex<double>(argument.number, argument.imaginary));
        case Kind::string: return graph_.insertConstant(argument.text);
        case Kind::scalar_type:
        case Kind::layout:
        case Kind::memory_format: return graph_.insertConstant(argument.integer);
        case Kind::device: try { return graph_.insertConstant(c10::Device(argument.text));
            } catch (const c10::Error&) {
                refuse_node(node, "there is no device " + base::printable(argument.text),
                            "export the model for another device");
            }
        case Kind::unknown:
            refuse_node(node,
                        "it takes " + base::printable(argument.text) +
                            ", which this twinkle or TorchScript does not have",
                        "export the model without it");
        default:
            refuse_node(node, "it takes an argument that TorchScript has no counterpart of",
                        "export the model without it");
    }
}

jit::Value* NodeWriter::list(const Node& node, const Argument& argument,
                             const c10::TypePtr& formal) {
    c10::TypePtr element;
    if (formal != nullptr) {
        if (const auto list_type = formal->cast<c10::ListType>()) {
            element = list_type->getElementType();
        }
    }
    std::vector<jit::Value*> items;
    items.reserve(argument.items.size());
    for (const Argument& item : argument.items) {
        items.push_back(this->argument(node, item, element));
    }
    if (element == nullptr) {
        element = items.empty() ? c10::TypePtr(c10::TensorType::get()) : items.front()->type();
    }
    for (const jit::Value* item : items) {
        if (!item->type()->isSubtypeOf(*element)) {
            refuse_node(node, "it takes a list of values of several types", "export it without");
        }
    }
    return graph_.insertNode(graph_.createList(element, items))->output();
}

jit::Value* NodeWriter::argument(const Node& node, const Argument& argument,
                                 const c10::TypePtr& formal) {
    const c10::TypePtr wanted = without_optional(formal);
    if (argument.kind == Kind::list) {
        return list(node, argument, wanted);
    }
    if (!argument.is_value()) {
        return literal(node, argument, wanted);
    }
    jit::Value* found = value(argument);
    if (wants(wanted, c10::TypeKind::FloatType) &&
        found->type()->kind() == c10::TypeKind::IntType) {
        return builtin(node, "aten::Float", {found});
    }
    return found;
}

jit::Value* NodeWriter::builtin(const Node& node, const std::string& name,
                                const std::vector<jit::Value*>& arguments) {
    const std::vector<jit::NamedValue> given(arguments.begin(), arguments.end());
    try {
        return jit::emitBuiltinCall(origins_.range_of(node), graph_,
                                    c10::Symbol::fromQualString(name), given, {});
    } catch (const std::exception&) {
        refuse_node(node, "TorchScript has no " + name + " for these arguments",
                    "export the model without it");
    }
}

// Numbers that tensors hold, and numbers of sizes, become what the archive says they are.
jit::Value* NodeWriter::as_kind(const Node& node, jit::Value* value, Kind kind) {
    const auto type = value->type()->kind();
    if (kind == Kind::sym_int && type != c10::TypeKind::IntType) {
        return builtin(node, "aten::Int", {value});
    }
    if (kind == Kind::sym_float && type != c10::TypeKind::FloatType) {
        return builtin(node, "aten::Float", {value});
    }
    if (kind == Kind::sym_bool && type != c10::TypeKind::BoolType) {
        return builtin(node, "aten::Bool", {value});
    }
    if (kind == Kind::tensor && !value->type()->isSubtypeOf(*c10::TensorType::get())) {
        refuse_node(node, "it gives no tensor where the archive says so", "export the model again");
    }
    return value;
}

void NodeWriter::define_outputs(const Node& node, const std::vector<jit::Value*>& results) {
    if (node.outputs.size() > results.size()) {
        refuse_node(node, "it gives less than the archive says", "export the model again");
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const Argument& output = node.outputs[i];
        if (output.kind == Kind::list) {
            if (results[i]->type()->kind() != c10::TypeKind::ListType) {
                refuse_node(node, "it gives no list where the archive says so",
                            "export the model again");
            }
            jit::Node* unpack =
                graph_.insertNode(graph_.createListUnpack(results[i], output.items.size()));
            for (std::size_t k = 0; k < output.items.size(); ++k) {
                define(output.items[k], as_kind(node, unpack->output(k), output.items[k].kind));
            }
        } else if (output.is_value()) {
            define(output, as_kind(node, results[i], output.kind));
        }
    }
}

void NodeWriter::write_assertion(const Node& node) {
    if (node.inputs.empty() || node.inputs.front().value.kind != Kind::sym_bool) {
        return;
    }
    const std::string message = node.inputs.size() > 1 && node.inputs[1].value.kind == Kind::string
                                    ? node.inputs[1].value.text
                                    : "an assertion of the exported model failed";
    write_check(graph_, value(node.inputs.front().value), plain(message));
}

void NodeWriter::write_python_operator(const Node& node) {
    std::vector<jit::Value*> arguments;
    for (const NamedArgument& input : node.inputs) {
        arguments.push_back(argument(node, input.value, nullptr));
    }
    const auto power = small_power(node);
    if (power) {
        jit::Value* product = arguments.front();
        for (std::int64_t i = 1; i < *power; ++i) {
            product = builtin(node, "aten::mul", {product, arguments.front()});
        }
        define_outputs(node, {product});
        return;
    }
    const auto name = counterpart_of(node.target);
    if (!name) {
        refuse_node(node, "TorchScript has no counterpart of " + base::printable(node.target),
                    "export the model without it");
    }
    define_outputs(node, {builtin(node, *name, arguments)});
}

void NodeWriter::write(const Node& node) {
    using Write = void (NodeWriter::*)(const Node&);
    static const std::map<std::string, Write> special = {
        {"torch.ops.higher_order.cond", &NodeWriter::write_cond},
        {"torch.ops.higher_order.while_loop", &NodeWriter::write_while_loop},
        {"torch.ops.higher_order.map_impl", &NodeWriter::write_map},
        {"torch.ops.higher_order.scan", &NodeWriter::write_scan},
        {"torch.ops.higher_order.call_torchbind", &NodeWriter::write_method_call},
        {"torch.ops.aten._assert_scalar.default", &NodeWriter::write_assertion},
    };
    origins_.count(node);
    const auto known = special.find(node.target);
    if (known != special.end()) {
        (this->*known->second)(node);
    } else if (node.target.starts_with(higher_order_prefix)) {
        refuse_node(node, "TorchScript has no counterpart of this higher-order operator",
                    "save ep.run_decompositions() instead of ep, or export the model without it");
    } else if (node.target.starts_with(operator_prefix)) {
        write_operator(node);
    } else {
        write_python_operator(node);
    }
}

}  // namespace twinkle::runtime::exported
