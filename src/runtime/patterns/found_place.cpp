#include "runtime/patterns/found_place.h"

#include "runtime/graph/format.h"

#include <algorithm>

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

std::string problem_of(const FlatGraph& graph, const FormulaMatch& match) {
    const auto inside = [&](std::int32_t node) {
        return std::binary_search(match.nodes.begin(), match.nodes.end(), node);
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
            if (value.escapes || !std::all_of(value.users.begin(), value.users.end(), inside)) {
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
