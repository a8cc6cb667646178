#include "runtime/patterns/known_dtypes.h"

#include "runtime/graph/dtype_rules.h"

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace twinkle::runtime {

namespace {

using c10::ScalarType;

// How the dtype of an operator's result follows from those of what it reads, beyond what
// dtype_rules.h says.
enum class Follows {
    first,        // that of the first input, whatever it is
    floating,     // that of the first input, if it is a floating point dtype
    agreeing,     // all floating tensors must have one dtype, which is that of the result
    elementwise,  // two operands
    with_dtype,   // an argument says it: reductions and softmax
    power,
    choice,
    filled,
    joined,
};

const std::unordered_map<c10::Symbol, Follows>& pattern_rules() {
    static const auto& all = *[] {
        auto* made = new std::unordered_map<c10::Symbol, Follows>();
        const auto add = [&](Follows follows, std::initializer_list<const char*> names) {
            for (const char* name : names) {
                made->emplace(c10::Symbol::fromQualString(std::string("aten::") + name), follows);
            }
        };
        add(Follows::first, {"neg", "relu", "abs", "square"});
        add(Follows::floating,
            {"rsqrt", "sqrt",     "exp",        "tanh",       "sigmoid",    "silu",
             "gelu",  "erf",      "sin",        "cos",        "log",        "reciprocal",
             "elu",   "clamp",    "leaky_relu", "hardtanh",   "hardswish",  "relu6",
             "mish",  "softplus", "batch_norm", "avg_pool2d", "max_pool2d", "adaptive_avg_pool2d"});
        add(Follows::elementwise,
            {"add", "sub", "mul", "div", "rsub", "maximum", "minimum", "clamp_min", "clamp_max"});
        add(Follows::with_dtype, {"softmax", "log_softmax", "mean", "sum", "cumsum"});
        add(Follows::power, {"pow"});
        add(Follows::choice, {"where"});
        add(Follows::filled, {"zeros"});
        add(Follows::joined, {"cat", "stack"});
        return made;
    }();
    return all;
}

std::optional<Follows> rule_of(c10::Symbol op) {
    if (const auto own = pattern_rules().find(op); own != pattern_rules().end()) {
        return own->second;
    }
    const std::string_view name = op.is_aten() ? op.toUnqualString() : "";
    if (!operands_of_one_dtype(name).empty()) {
        return Follows::agreeing;
    }
    return gives_dtype_of_first(name) ? std::optional(Follows::first) : std::nullopt;
}

ScalarType of(const FlatGraph& graph, const FlatInput& input) {
    return graph.value(input.value).dtype;
}

ScalarType if_floating(ScalarType dtype) {
    return dtype != ScalarType::Undefined && c10::isFloatingType(dtype) ? dtype
                                                                        : ScalarType::Undefined;
}

// Numbers do not promote a floating tensor; two tensors only count if they are alike, since one may
// have no dimensions. A number that was such a tensor decides where the other is a mere number.
ScalarType promoted(const FlatGraph& graph, const FlatNode& node, std::size_t first = 0) {
    const FlatValue* operands[] = {&graph.value(node.inputs[first].value),
                                   &graph.value(node.inputs[first + 1].value)};
    if (operands[0]->kind == ValueKind::number && operands[1]->kind == ValueKind::number) {
        const ScalarType one = if_floating(operands[0]->dtype);
        const ScalarType other = if_floating(operands[1]->dtype);
        return one == other || other == ScalarType::Undefined ? one
               : one == ScalarType::Undefined                 ? other
                                                              : ScalarType::Undefined;
    }
    ScalarType dtype = ScalarType::Undefined;
    for (const FlatValue* operand : operands) {
        const FlatValue& value = *operand;
        if (value.kind == ValueKind::number) {
            continue;
        }
        const ScalarType own = if_floating(value.dtype);
        if (own == ScalarType::Undefined || (dtype != ScalarType::Undefined && dtype != own)) {
            return ScalarType::Undefined;
        }
        dtype = own;
    }
    return dtype;
}

ScalarType agreed(const FlatGraph& graph, const FlatNode& node) {
    for (const FlatInput& input : node.inputs) {
        const FlatValue& value = graph.value(input.value);
        if (value.kind == ValueKind::tensor && if_floating(value.dtype) != ScalarType::Undefined) {
            return value.dtype;
        }
    }
    return ScalarType::Undefined;
}

ScalarType of_constant(const FlatGraph& graph, const FlatInput& input) {
    const c10::IValue* constant = graph.constant_of(input.value);
    if (constant == nullptr || !constant->isInt() || constant->toInt() < 0 ||
        constant->toInt() >= static_cast<int>(ScalarType::NumOptions)) {
        return ScalarType::Undefined;
    }
    return static_cast<ScalarType>(constant->toInt());
}

ScalarType of_joined(const FlatGraph& graph, const FlatNode& node) {
    const auto index = graph.value(node.inputs[0].value).parts;
    if (index == nothing) {
        return ScalarType::Undefined;
    }
    const auto& parts = graph.parts[static_cast<std::size_t>(index)];
    ScalarType dtype = parts.empty() ? ScalarType::Undefined : of(graph, parts[0]);
    for (const FlatInput& part : parts) {
        dtype = of(graph, part) == dtype ? dtype : ScalarType::Undefined;
    }
    return dtype;
}

ScalarType of_its_argument(const FlatGraph& graph, const FlatNode& node) {
    const c10::IValue* last = graph.constant_of(node.inputs.back().value);
    return last != nullptr && last->isNone() ? if_floating(of(graph, node.inputs[0]))
                                             : of_constant(graph, node.inputs.back());
}

// The dtype that aten::to gives where it does more than cast: it copies, or moves to a device.
ScalarType converted(const FlatGraph& graph, const FlatNode& node) {
    const c10::FunctionSchema* schema = node.node->maybeSchema();
    if (schema == nullptr || schema->arguments().size() != node.inputs.size()) {
        return ScalarType::Undefined;
    }
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
        const std::string& name = schema->arguments()[i].name();
        if (name == "other") {
            return of(graph, node.inputs[i]);
        }
        if (name == "dtype") {
            const c10::IValue* held = graph.constant_of(node.inputs[i].value);
            return held != nullptr && held->isNone() ? of(graph, node.inputs[0])
                                                     : of_constant(graph, node.inputs[i]);
        }
    }
    return ScalarType::Undefined;
}

}  // namespace

ScalarType known_dtype(const FlatGraph& graph, const FlatNode& node) {
    if (node.inputs.empty()) {
        return ScalarType::Undefined;
    }
    if (node.op == cast_op()) {
        return of_constant(graph, node.inputs[1]);
    }
    if (node.op == items_op()) {
        return of(graph, node.inputs[0]);
    }
    static const auto to = c10::Symbol::fromQualString("aten::to");
    if (node.op == to) {
        return converted(graph, node);
    }
    const auto rule = rule_of(node.op);
    if (!rule) {
        return ScalarType::Undefined;
    }
    switch (const std::size_t count = node.inputs.size(); *rule) {
        case Follows::first: return of(graph, node.inputs[0]);
        case Follows::floating: return if_floating(of(graph, node.inputs[0]));
        case Follows::power:
            return count > 1 && graph.value(node.inputs[1].value).kind == ValueKind::number
                       ? if_floating(of(graph, node.inputs[0]))
                       : ScalarType::Undefined;
        case Follows::agreeing: return agreed(graph, node);
        case Follows::elementwise: return count > 1 ? promoted(graph, node) : ScalarType::Undefined;
        case Follows::choice: return count == 3 ? promoted(graph, node, 1) : ScalarType::Undefined;
        case Follows::filled:
            return count == 5 ? of_constant(graph, node.inputs[1]) : ScalarType::Undefined;
        case Follows::with_dtype: return of_its_argument(graph, node);
        case Follows::joined: return of_joined(graph, node);
    }
    return ScalarType::Undefined;
}

}  // namespace twinkle::runtime
