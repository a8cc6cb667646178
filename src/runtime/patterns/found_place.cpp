#include "runtime/patterns/found_place.h"

#include "runtime/graph/format.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace twinkle::runtime {

namespace {

MatchedParameter matched(const FlatGraph& graph, const FormulaParameter& parameter,
                         const std::vector<FlatInput>& images) {
    if (parameter.value == nothing) {
        return {{}, parameter.fixed};
    }
    const FlatInput& use = images[static_cast<std::size_t>(parameter.value)];
    const c10::IValue* held = graph.constant_of(use.value);
    MatchedParameter one{use, std::nullopt};
    if (held != nullptr && !held->isTensor() && !held->isList()) {
        one.constant = parameter.type->kind() == c10::TypeKind::FloatType && held->isInt()
                           ? c10::IValue(static_cast<double>(held->toInt()))
                           : *held;
    }
    return one;
}

// Whether the operator's result has as many dimensions as its first input.
bool keeps_dimensions(c10::Symbol op) {
    static const auto& all = *new std::unordered_set<c10::Symbol>{
        symbol("aten::conv2d"),    symbol("aten::batch_norm"), symbol("aten::layer_norm"),
        symbol("aten::relu"),      symbol("aten::relu6"),      symbol("aten::silu"),
        symbol("aten::hardswish"), symbol("aten::gelu"),       symbol("aten::mish"),
        symbol("aten::sigmoid"),   symbol("aten::tanh")};
    return all.contains(op);
}

bool is_inside(const FormulaMatch& match, std::int32_t node) {
    return std::binary_search(match.nodes.begin(), match.nodes.end(), node);
}

// What the place reads that has as many dimensions as one of its values.
std::optional<FlatInput> of_same_dimensions(const FlatGraph& graph, const FormulaMatch& match,
                                            ValueId inside) {
    FlatInput at{inside, 0, nullptr};
    for (const FlatNode* node = graph.node_of(inside);
         node != nullptr && is_inside(match, graph.value(at.value).node);
         node = graph.node_of(at.value)) {
        if (!keeps_dimensions(node->op) || node->inputs.empty()) {
            return std::nullopt;
        }
        at = node->inputs[0];
    }
    return at.from == nullptr ? std::nullopt : std::optional(at);
}

// Its problem; notes whose dimensions are asked for.
std::string problem_of(const FlatGraph& graph, FormulaMatch& match) {
    static const c10::Symbol dimensions = symbol("aten::dim");
    const auto inside = [&](std::int32_t node) { return is_inside(match, node); };
    const auto asks_for_dimensions = [&](std::int32_t node) {
        return inside(node) || graph.node(node).op == dimensions;
    };
    for (const std::int32_t index : match.nodes) {
        for (const ValueId output : graph.node(index).outputs) {
            if (std::find(match.results.begin(), match.results.end(), output) !=
                match.results.end()) {
                continue;
            }
            const FlatValue& value = graph.value(output);
            if (value.kind == ValueKind::number) {
                continue;  // stays where it is
            }
            const auto& users = value.users;
            if (!value.escapes && std::all_of(users.begin(), users.end(), inside)) {
                continue;
            }
            const auto same = of_same_dimensions(graph, match, output);
            if (same && !value.escapes &&
                std::all_of(users.begin(), users.end(), asks_for_dimensions)) {
                match.dimensions.push_back({output, *same});
            } else {
                return fmt::format("what {} computes inside of it is used elsewhere, too",
                                   graph.node(index).node->kind().toQualString());
            }
        }
    }
    const auto first = static_cast<std::size_t>(match.nodes.front());
    const auto last = static_cast<std::size_t>(match.nodes.back());
    if (graph.writes[last] != graph.writes[first]) {
        return "something between its operators writes into a tensor or an attribute";
    }
    return "";
}

}  // namespace

bool accepts(const FlatGraph& graph, const c10::Type& type, const FlatInput& given) {
    if (given.from == nullptr) {
        return false;
    }
    const FlatValue& value = graph.value(given.value);
    const c10::IValue* held = graph.constant_of(given.value);
    const c10::TypePtr& own = given.from->type();
    switch (type.kind()) {
        case c10::TypeKind::TensorType:
            return value.kind == ValueKind::tensor && (held == nullptr || held->isTensor());
        case c10::TypeKind::FloatType:
            return held != nullptr ? held->isDouble() || held->isInt()
                                   : own->kind() == c10::TypeKind::FloatType;
        case c10::TypeKind::IntType:
            return held != nullptr ? held->isInt() : own->kind() == c10::TypeKind::IntType;
        case c10::TypeKind::BoolType:
            return held != nullptr ? held->isBool() : own->kind() == c10::TypeKind::BoolType;
        case c10::TypeKind::OptionalType:
            return (held != nullptr && held->isNone()) || own->kind() == c10::TypeKind::NoneType ||
                   accepts(graph, *type.expectRef<c10::OptionalType>().getElementType(), given);
        default: return own->isSubtypeOf(type);
    }
}

FormulaMatch found_place(const FlatGraph& graph, const Formula& formula,
                         const std::vector<FlatInput>& images, std::vector<std::int32_t> nodes) {
    FormulaMatch match;
    match.nodes = std::move(nodes);
    std::sort(match.nodes.begin(), match.nodes.end());
    match.nodes.erase(std::unique(match.nodes.begin(), match.nodes.end()), match.nodes.end());
    for (const ValueId id : formula.results) {
        match.results.push_back(images[static_cast<std::size_t>(id)].value);
    }
    for (const FormulaParameter& parameter : formula.parameters) {
        match.parameters.push_back(matched(graph, parameter, images));
    }
    match.problem = problem_of(graph, match);
    return match;
}

}  // namespace twinkle::runtime
