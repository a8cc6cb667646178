#include "runtime/exported/autocast.h"

#include "runtime/exported/origin.h"

#include <c10/core/DispatchKey.h>

#include <algorithm>
#include <set>

namespace twinkle::runtime::exported {

using Kind = Argument::Kind;

namespace {

void add_dtypes(const Argument& argument, const Graph& graph, std::set<at::ScalarType>& into) {
    const auto meta = graph.tensors.find(argument.text);
    if (argument.kind == Kind::tensor && meta != graph.tensors.end() && meta->second.dtype &&
        at::isFloatingType(*meta->second.dtype)) {
        into.insert(*meta->second.dtype);
    }
    for (const Argument& item : argument.items) {
        add_dtypes(item, graph, into);
    }
}

[[noreturn]] void refuse_autocast(const Node& node) {
    refuse_node(node, "what autocast casts in this operator is not in the archive",
                "save ep.run_decompositions() instead of ep: its casts are written out");
}

}  // namespace

bool may_be_cast(at::ScalarType dtype) {
    return at::isFloatingType(dtype) && dtype != at::kDouble;
}

std::optional<at::ScalarType> autocast_dtype(const Node& node, const Graph& graph,
                                             const c10::OperatorHandle& op) {
    std::set<at::ScalarType> taken;
    std::set<at::ScalarType> given;
    for (const NamedArgument& input : node.inputs) {
        add_dtypes(input.value, graph, taken);
    }
    for (const Argument& output : node.outputs) {
        add_dtypes(output, graph, given);
    }
    const auto key = node.autocast->device == "cpu" ? c10::DispatchKey::AutocastCPU
                                                    : c10::DispatchKey::AutocastCUDA;
    const bool is_cast = op.hasKernelForDispatchKey(key);
    if (taken.empty() || given.empty() || taken.contains(at::kDouble) || taken == given) {
        return std::nullopt;
    }
    if (given.size() != 1) {
        refuse_autocast(node);
    }
    const at::ScalarType result = *given.begin();
    if (is_cast && (result == node.autocast->dtype || result == at::kFloat)) {
        return result;
    }
    const bool computes_of_parts =
        op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    if (is_cast || (computes_of_parts && !taken.contains(result))) {
        refuse_autocast(node);
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime::exported
