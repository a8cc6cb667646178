#include "runtime/patterns/flat_operations.h"

#include "runtime/patterns/known_dtypes.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

bool is_writing(const jit::Node* node) {
    if (node->kind() == c10::prim::SetAttr) {
        return true;
    }
    const auto* schema = node->maybeSchema();
    return schema != nullptr && schema->is_mutable();
}

void FlatOperations::add(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
    Normal normal = normal_form(node, {to_, frame});
    if (normal.alias != nullptr) {
        to_.bind(frame, node->output(), to_.known(frame, normal.alias));
        return;
    }
    if (normal.part) {
        const ValueId whole = to_.known(frame, normal.inputs[0]);
        if (const auto id = part_of(whole, *normal.part, node, frame, block_id); id != nothing) {
            to_.bind(frame, node->output(), id);
            return;
        }
    }
    if (normal.constant) {
        const ValueId id = to_.define(frame, node->output());
        to_.value(id).kind = ValueKind::number;
        to_.set_constant(id, std::move(*normal.constant));
        return;
    }
    const auto inputs = inputs_of(normal, frame);
    ValueId* number = normal.is_number ? &number_of(normal.op, inputs, frame, block_id) : nullptr;
    if (number != nullptr && *number != nothing) {
        to_.bind(frame, node->output(), *number);
        return;
    }
    const bool writes = is_writing(node);
    to_.writing += writes ? 1 : 0;
    if (node->kind() == c10::prim::SetAttr) {
        attributes_.forget(node);
    }
    FlatNode& made = to_.add(node, frame, block_id, normal.op);
    made.is_in_place = normal.is_in_place;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        to_.take(made, inputs[i], normal.inputs[i]);
        if ((writes || node->kind().is_prim()) && to_.parts_of(inputs[i]) != nullptr) {
            to_.escape(inputs[i]);
        }
    }
    if (normal.merges_input) {
        made.merged = to_.value(made.inputs[0].value).node;
        // The merged node has its own use; what it reads is what this one reads.
        made.inputs[0] = to_.graph.node(made.merged).inputs[0];
        to_.add_user(made.inputs[0].value, made);
    }
    if (number != nullptr) {
        *number = made.outputs[0];
        to_.value(*number).kind = ValueKind::number;
    }
    to_.settle(made);
}

FlatOperations::Inputs FlatOperations::inputs_of(const Normal& normal, std::int32_t frame) {
    Inputs inputs;
    for (jit::Value* input : normal.inputs) {
        inputs.push_back(to_.known(frame, input));
    }
    for (const auto& [index, constant] : normal.literals) {
        inputs[index] = to_.fresh(frame, normal.inputs[index]);
        to_.set_constant(inputs[index], constant);
    }
    return inputs;
}

ValueId FlatOperations::part_of(ValueId whole, std::int64_t index, jit::Node* node,
                                std::int32_t frame, std::int32_t block_id) {
    if (const auto* parts = to_.parts_of(whole)) {
        const auto count = static_cast<std::int64_t>(parts->size());
        const auto at = index < 0 ? index + count : index;
        return at >= 0 && at < count ? (*parts)[static_cast<std::size_t>(at)].value : nothing;
    }
    if (to_.value(whole).kind == ValueKind::tuple || index < 0 || index > 1000) {
        return nothing;
    }
    FlatNode& made = to_.add(node, frame, block_id, items_op(), false);
    to_.take(made, whole, node->input(0));
    const ValueId id = to_.fresh(frame, node->output());
    to_.value(id).output = static_cast<std::int32_t>(index);
    to_.value(id).node = static_cast<std::int32_t>(to_.graph.nodes.size()) - 1;
    made.outputs.push_back(id);
    to_.value(id).dtype = known_dtype(to_.graph, made);
    return id;
}

// What a trace computes again for every use is one value. Nothing: not seen yet.
ValueId& FlatOperations::number_of(c10::Symbol op, const Inputs& inputs, std::int32_t frame,
                                   std::int32_t block_id) {
    NumberKey key{op, frame, block_id, {}};
    for (std::size_t i = 0; i < key.inputs.size(); ++i) {
        const c10::IValue* held = to_.graph.constant_of(inputs[i]);
        const bool fixed = held != nullptr && held->isInt();
        key.inputs[i] = {fixed, fixed ? held->toInt() : inputs[i]};
    }
    return numbers_.try_emplace(key, nothing).first->second;
}

}  // namespace twinkle::runtime
