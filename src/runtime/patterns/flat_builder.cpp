#include "runtime/patterns/flat_builder.h"

#include "runtime/patterns/known_dtypes.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

ValueKind kind_of(const c10::Type& type) {
    switch (type.kind()) {
        case c10::TypeKind::TensorType: return ValueKind::tensor;
        case c10::TypeKind::IntType:
        case c10::TypeKind::FloatType:
        case c10::TypeKind::BoolType:
        case c10::TypeKind::NumberType: return ValueKind::number;
        case c10::TypeKind::OptionalType: {
            const auto& inner = type.expectRef<c10::OptionalType>().getElementType();
            return inner->kind() == c10::TypeKind::TensorType ? ValueKind::tensor
                                                              : ValueKind::other;
        }
        default: return ValueKind::other;
    }
}

}  // namespace

FlatBuilder::Nested::Nested(FlatBuilder& builder) : builder_(builder) {
    if (builder.depth_ >= builder.limits_.depth) {
        throw TooLarge{"its calls and blocks nest more than " +
                       std::to_string(builder.limits_.depth) + " deep"};
    }
    ++builder.depth_;
}

void FlatBuilder::refuse_size() const {
    throw TooLarge{"with every call followed it has more than " + std::to_string(limits_.nodes) +
                   " operations"};
}

std::int32_t FlatBuilder::enter(std::int32_t parent, jit::Node* call, jit::Function* function,
                                const std::shared_ptr<jit::Graph>& body) {
    if (graph.frames.size() >= limits_.nodes) {
        refuse_size();
    }
    Frame made;
    made.parent = parent;
    made.call = call;
    made.function = function;
    made.graph = body;
    made.depth = parent == nothing ? 0 : frame(parent).depth + 1;
    graph.frames.push_back(std::move(made));
    return static_cast<std::int32_t>(graph.frames.size()) - 1;
}

ValueId FlatBuilder::fresh(std::int32_t frame, jit::Value* from) {
    // Values without nodes cost as much.
    if (graph.values.size() > 2 * limits_.nodes) {
        refuse_size();
    }
    FlatValue& made = graph.values.emplace_back();
    made.kind = kind_of(*from->type());
    made.frame = frame;
    made.from = from;
    return static_cast<ValueId>(graph.values.size()) - 1;
}

ValueId FlatBuilder::bind(std::int32_t frame, const jit::Value* from, ValueId id) {
    auto& values = this->frame(frame).values;
    if (from->unique() >= values.size()) {
        values.resize(std::max(from->unique() + 1, values.size() * 2), nothing);
    }
    values[from->unique()] = id;
    return id;
}

ValueId FlatBuilder::known(std::int32_t frame, jit::Value* from) {
    const ValueId id = graph.value_in(frame, from);
    return id != nothing ? id : define(frame, from);
}

void FlatBuilder::set_constant(ValueId id, c10::IValue constant) {
    value(id).constant = static_cast<std::int32_t>(graph.constants.size());
    graph.constants.push_back(std::move(constant));
}

void FlatBuilder::set_parts(ValueId id, c10::SmallVector<FlatInput, 4> parts) {
    value(id).parts = static_cast<std::int32_t>(graph.parts.size());
    graph.parts.push_back(std::move(parts));
}

void FlatBuilder::escape(ValueId id) {
    escaping_.assign(1, id);
    while (!escaping_.empty()) {
        FlatValue& one = value(escaping_.back());
        escaping_.pop_back();
        if (one.escapes) {
            continue;  // and so do its parts
        }
        one.escapes = true;
        if (one.parts != nothing) {
            for (const FlatInput& part : graph.parts[static_cast<std::size_t>(one.parts)]) {
                escaping_.push_back(part.value);
            }
            if (one.kind != ValueKind::tuple) {
                one.parts = nothing;
            }
        }
    }
}

FlatNode& FlatBuilder::add(jit::Node* node, std::int32_t frame, std::int32_t block, c10::Symbol op,
                           bool outputs) {
    if (graph.nodes.size() >= limits_.nodes) {
        refuse_size();
    }
    const auto index = static_cast<std::int32_t>(graph.nodes.size());
    FlatNode& made = graph.nodes.emplace_back();
    made.op = op;
    made.node = node;
    made.frame = frame;
    made.block = block;
    for (std::size_t i = 0; outputs && i < node->outputs().size(); ++i) {
        const ValueId id = define(frame, node->outputs()[i]);
        value(id).node = index;
        value(id).output = static_cast<std::int32_t>(i);
        made.outputs.push_back(id);
    }
    graph.writes.push_back(writing);
    graph.by_op[op].push_back(index);
    return made;
}

void FlatBuilder::add_user(ValueId id, const FlatNode& node) {
    value(id).users.push_back(static_cast<std::int32_t>(&node - graph.nodes.data()));
}

void FlatBuilder::take(FlatNode& node, ValueId id, jit::Value* from) {
    node.inputs.push_back({id, node.frame, from});
    add_user(id, node);
    if (const auto* parts = parts_of(id)) {
        for (const FlatInput& part : *parts) {
            add_user(part.value, node);
            if (value(part.value).parts != nothing) {
                escape(part.value);  // deeper is not followed
            }
        }
    }
}

void FlatBuilder::settle(FlatNode& node) {
    const c10::ScalarType dtype = known_dtype(graph, node);
    for (const ValueId id : node.outputs) {
        if (value(id).kind != ValueKind::number) {
            value(id).dtype = dtype;
        }
    }
}

// How many nodes each frame has with the calls that it makes.
void FlatBuilder::finish() {
    for (const FlatNode& node : graph.nodes) {
        bool used = node.outputs.empty();
        for (const ValueId id : node.outputs) {
            used = used || value(id).escapes || !value(id).users.empty();
        }
        frame(node.frame).nodes += used ? 1 : 0;
    }
    for (std::size_t i = graph.frames.size(); i-- > 1;) {
        if (graph.frames[i].parent != nothing) {
            frame(graph.frames[i].parent).nodes += graph.frames[i].nodes;
        }
    }
}

}  // namespace twinkle::runtime
