#include "runtime/patterns/cast.h"

namespace twinkle::runtime {

std::optional<Cast> as_cast(const FlatGraph& graph, const FlatNode& node) {
    static const auto type_as = c10::Symbol::fromQualString("aten::type_as");
    static const auto dtype = c10::Symbol::fromQualString("prim::dtype");
    if (node.op == type_as) {
        return Cast{node.inputs[0], graph.value(node.inputs[1].value).dtype, node.inputs[1],
                    nothing};
    }
    if (node.op != cast_op()) {
        return std::nullopt;
    }
    Cast cast{node.inputs[0], c10::ScalarType::Undefined, std::nullopt, nothing};
    const FlatInput& wanted = node.inputs[1];
    if (const c10::IValue* held = graph.constant_of(wanted.value); held && held->isInt()) {
        cast.known = static_cast<c10::ScalarType>(held->toInt());
        return cast;
    }
    const FlatNode* source = graph.node_of(wanted.value);
    if (source == nullptr || source->op != dtype) {
        return std::nullopt;
    }
    cast.like = source->inputs[0];
    cast.known = graph.value(cast.like->value).dtype;
    cast.dtype_node = graph.value(wanted.value).node;
    return cast;
}

ValueId behind_casts(const FlatGraph& graph, ValueId id) {
    const FlatNode* node = graph.node_of(id);
    while (node != nullptr && as_cast(graph, *node)) {
        id = node->inputs[0].value;
        node = graph.node_of(id);
    }
    return id;
}

}  // namespace twinkle::runtime
