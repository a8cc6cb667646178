#include "runtime/patterns/flat_graph.h"

#include "runtime/patterns/flat_rules.h"
#include "runtime/rewrite/class_name.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>

#include <map>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

struct TooLarge {
    std::string what;
};

ValueKind kind_of(const c10::TypePtr& type) {
    switch (type->kind()) {
        case c10::TypeKind::TensorType: return ValueKind::tensor;
        case c10::TypeKind::IntType:
        case c10::TypeKind::FloatType:
        case c10::TypeKind::BoolType:
        case c10::TypeKind::NumberType: return ValueKind::number;
        case c10::TypeKind::OptionalType: {
            const auto inner = type->expectRef<c10::OptionalType>().getElementType();
            return inner->kind() == c10::TypeKind::TensorType ? ValueKind::tensor
                                                              : ValueKind::other;
        }
        default: return ValueKind::other;
    }
}

class Flattener {
public:
    explicit Flattener(const FlatLimits& limits) : limits_(limits) {}

    FlatGraph graph;

    void root(const jit::Module& module) {
        for (jit::Function* method : module.type()->methods()) {
            auto* compiled = jit::tryToGraphFunction(*method);
            if (compiled == nullptr) {
                continue;
            }
            const auto frame = enter(nothing, nullptr, method, compiled->graph());
            graph.frames.back().object = module._ivalue().get();
            const auto inputs = compiled->graph()->inputs();
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const ValueId id = bind(frame, inputs[i], fresh(frame, inputs[i]));
                if (i == 0) {
                    set_object(id, module._ivalue());
                }
            }
            block(compiled->graph()->block(), frame, new_block());
            for (jit::Value* output : compiled->graph()->outputs()) {
                escape(known(frame, output));
            }
        }
        finish();
    }

    void single(const std::shared_ptr<jit::Graph>& alone, std::vector<FlatInput>& results) {
        const auto frame = enter(nothing, nullptr, nullptr, alone);
        for (jit::Value* input : alone->inputs()) {
            bind(frame, input, fresh(frame, input));
        }
        block(alone->block(), frame, new_block());
        for (jit::Value* output : alone->outputs()) {
            results.push_back({known(frame, output), output, frame});
        }
        finish();
    }

private:
    FlatValue& value(ValueId id) { return graph.values[static_cast<std::size_t>(id)]; }
    Frame& frame_at(std::int32_t id) { return graph.frames[static_cast<std::size_t>(id)]; }
    std::int32_t new_block() { return blocks_++; }

    std::int32_t enter(std::int32_t parent, jit::Node* call, jit::Function* function,
                       const std::shared_ptr<jit::Graph>& body) {
        Frame frame;
        frame.parent = parent;
        frame.call = call;
        frame.function = function;
        frame.graph = body;
        frame.depth = parent == nothing ? 0 : frame_at(parent).depth + 1;
        if (frame.depth > limits_.depth) {
            throw TooLarge{"its calls nest more than " + std::to_string(limits_.depth) + " deep"};
        }
        graph.frames.push_back(std::move(frame));
        return static_cast<std::int32_t>(graph.frames.size()) - 1;
    }

    ValueId fresh(std::int32_t frame, jit::Value* from) {
        FlatValue made;
        made.kind = kind_of(from->type());
        made.frame = frame;
        made.from = from;
        graph.values.push_back(std::move(made));
        // Values without nodes cost as much.
        if (graph.values.size() > 2 * limits_.nodes) {
            throw TooLarge{"with every call followed it has more than " +
                           std::to_string(limits_.nodes) + " operations"};
        }
        return static_cast<ValueId>(graph.values.size()) - 1;
    }

    ValueId bind(std::int32_t frame, const jit::Value* from, ValueId id) {
        frame_at(frame).values[from] = id;
        return id;
    }

    ValueId known(std::int32_t frame, jit::Value* from) {
        const auto& values = frame_at(frame).values;
        const auto found = values.find(from);
        return found != values.end() ? found->second : bind(frame, from, fresh(frame, from));
    }

    void set_constant(ValueId id, c10::IValue constant) {
        value(id).constant = static_cast<std::int32_t>(graph.constants.size());
        graph.constants.push_back(std::move(constant));
    }

    void set_object(ValueId id, c10::intrusive_ptr<c10::ivalue::Object> object) {
        value(id).object = static_cast<std::int32_t>(graph.objects.size());
        value(id).kind = ValueKind::module;
        graph.objects.push_back(std::move(object));
    }

    // Whatever takes a tuple may use its elements.
    void escape(ValueId id, int depth = 0) {
        value(id).escapes = true;
        if (value(id).parts != nothing && depth < 8) {
            const auto parts = graph.parts[static_cast<std::size_t>(value(id).parts)];
            for (const FlatInput& part : parts) {
                escape(part.value, depth + 1);
            }
        }
    }

    void block(jit::Block* nodes, std::int32_t frame, std::int32_t block_id) {
        for (jit::Node* node : nodes->nodes()) {
            visit(node, frame, block_id);
        }
    }

    void visit(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        switch (node->kind()) {
            case c10::prim::Constant: return constant(node, frame);
            case c10::prim::GetAttr: return attribute(node, frame);
            case c10::prim::TupleConstruct:
            case c10::prim::ListConstruct: return construct(node, frame);
            case c10::prim::TupleUnpack:
            case c10::prim::ListUnpack: return unpack(node, frame, block_id);
            case c10::prim::CallMethod: return call_method(node, frame, block_id);
            case c10::prim::CallFunction: return call_function(node, frame, block_id);
            default: break;
        }
        if (!node->blocks().empty()) {
            return opaque(node, frame, block_id);
        }
        operation(node, frame, block_id);
    }

    void constant(jit::Node* node, std::int32_t frame) {
        jit::Value* output = node->output();
        const ValueId id = bind(frame, output, fresh(frame, output));
        auto held = jit::toIValue(output);
        if (!held) {
            return;
        }
        if (held->isTensor() && held->toTensor().defined()) {
            const at::Tensor& tensor = held->toTensor();
            value(id).dtype = tensor.scalar_type();
            if (auto number = as_number(tensor)) {
                value(id).kind = ValueKind::number;
                held = std::move(number);
            }
        } else if (held->isNone()) {
            value(id).kind = ValueKind::other;
        }
        set_constant(id, std::move(*held));
    }

    void attribute(jit::Node* node, std::int32_t frame) {
        jit::Value* output = node->output();
        const ValueId owner = known(frame, node->input());
        const auto object = value(owner).object;
        if (object == nothing) {
            bind(frame, output, fresh(frame, output));
            return;
        }
        const auto& holder = graph.objects[static_cast<std::size_t>(object)];
        const std::string& name = node->s(c10::attr::name);
        // What is read twice is one value, as long as nothing is set.
        auto& same = attributes_[holder.get()][name];
        if (same.settings == settings_ && same.value != nothing) {
            bind(frame, output, same.value);
            return;
        }
        const ValueId id = bind(frame, output, fresh(frame, output));
        same = {settings_, id};
        if (!holder->type()->hasAttribute(name)) {
            return;
        }
        const c10::IValue held = holder->getAttr(name);
        if (held.isTensor() && held.toTensor().defined()) {
            value(id).dtype = held.toTensor().scalar_type();
        } else if (held.isObject()) {
            set_object(id, held.toObject());
        }
    }

    void construct(jit::Node* node, std::int32_t frame) {
        const ValueId id = bind(frame, node->output(), fresh(frame, node->output()));
        c10::SmallVector<FlatInput, 4> parts;
        for (jit::Value* input : node->inputs()) {
            parts.push_back({known(frame, input), input, frame});
        }
        value(id).kind =
            node->kind() == c10::prim::TupleConstruct ? ValueKind::tuple : ValueKind::other;
        value(id).parts = static_cast<std::int32_t>(graph.parts.size());
        graph.parts.push_back(std::move(parts));
    }

    void unpack(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        const ValueId whole = known(frame, node->input());
        const auto parts = value(whole).parts;
        const auto outputs = node->outputs();
        if (parts != nothing &&
            graph.parts[static_cast<std::size_t>(parts)].size() == outputs.size()) {
            for (std::size_t i = 0; i < outputs.size(); ++i) {
                bind(frame, outputs[i], graph.parts[static_cast<std::size_t>(parts)][i].value);
            }
            return;
        }
        FlatNode& made = add(node, frame, block_id, items_op());
        take(made, whole, node->input());
        settle(made);
    }

    void call_method(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        const ValueId self = known(frame, node->input(0));
        const auto object = value(self).object;
        if (object == nothing) {
            return opaque(node, frame, block_id);
        }
        const auto holder = graph.objects[static_cast<std::size_t>(object)];
        jit::Function* method = holder->type()->findMethod(node->s(c10::attr::name));
        auto* compiled = method == nullptr ? nullptr : jit::tryToGraphFunction(*method);
        if (compiled == nullptr || compiled->graph()->inputs().size() != node->inputs().size()) {
            return opaque(node, frame, block_id);
        }
        follow(node, node->inputs(), frame, block_id, *method, compiled->graph());
    }

    void call_function(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        const auto type = node->input(0)->type()->cast<c10::FunctionType>();
        auto* compiled = type == nullptr ? nullptr : jit::tryToGraphFunction(*type->function());
        if (compiled == nullptr ||
            compiled->graph()->inputs().size() + 1 != node->inputs().size()) {
            return opaque(node, frame, block_id);
        }
        const std::string name = unmangled(type->function()->qualname().qualifiedName());
        if (name.starts_with("twinkle_functions.") || name.starts_with("twinkle_patterns.")) {
            return opaque(node, frame, block_id);
        }
        if (const FunctionalOperator* known_as = functional_operator(name)) {
            const auto argument = [&](std::size_t i) { return known(frame, node->input(i + 1)); };
            const auto all = [&](const std::vector<std::size_t>& which, auto holds) {
                return std::all_of(which.begin(), which.end(),
                                   [&](std::size_t i) { return holds(graph, argument(i)); });
            };
            if (all(known_as->switched_off, is_false) && all(known_as->integers, is_integer)) {
                FlatNode& made = add(node, frame, block_id, known_as->op);
                for (const std::size_t i : known_as->arguments) {
                    take(made, argument(i), node->input(i + 1));
                }
                return settle(made);
            }
        }
        follow(node, node->inputs().slice(1), frame, block_id, *type->function(),
               compiled->graph());
    }

    void follow(jit::Node* call, at::ArrayRef<jit::Value*> arguments, std::int32_t frame,
                std::int32_t block_id, jit::Function& function,
                const std::shared_ptr<jit::Graph>& body) {
        const auto inner = enter(frame, call, &function, body);
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const ValueId id = known(frame, arguments[i]);
            bind(inner, body->inputs()[i], id);
            if (i == 0 && call->kind() == c10::prim::CallMethod && value(id).object != nothing) {
                const auto& object = graph.objects[static_cast<std::size_t>(value(id).object)];
                if (object->type()->is_module()) {
                    frame_at(inner).object = object.get();
                }
            }
        }
        block(body->block(), inner, block_id);
        for (std::size_t i = 0; i < call->outputs().size(); ++i) {
            bind(frame, call->outputs()[i], known(inner, body->outputs()[i]));
        }
    }

    // Not understood: it may do anything with its inputs.
    void opaque(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        FlatNode& made = add(node, frame, block_id, node->kind());
        const auto index = static_cast<std::int32_t>(graph.nodes.size()) - 1;
        for (jit::Value* input : node->inputs()) {
            take(made, known(frame, input), input);
            escape(made.inputs.back().value);
        }
        settle(made);
        if (node->blocks().empty()) {
            ++writing_;
            return;
        }
        for (jit::Block* inner : node->blocks()) {
            const auto inner_id = new_block();
            block(inner, frame, inner_id);
            for (jit::Value* output : inner->outputs()) {
                const ValueId id = known(frame, output);
                value(id).users.push_back(index);
                escape(id);
            }
        }
    }

    void operation(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        Normal normal = normal_form(node, [&](jit::Value* input) -> NormalView {
            const ValueId id = known(frame, input);
            return {graph, id};
        });
        if (normal.alias != nullptr) {
            bind(frame, node->output(), known(frame, normal.alias));
            return;
        }
        if (normal.part) {
            const ValueId whole = known(frame, normal.inputs[0]);
            if (const auto id = part_of(whole, *normal.part, node, frame, block_id);
                id != nothing) {
                bind(frame, node->output(), id);
                return;
            }
        }
        if (normal.constant) {
            const ValueId id = bind(frame, node->output(), fresh(frame, node->output()));
            value(id).kind = ValueKind::number;
            set_constant(id, std::move(*normal.constant));
            return;
        }
        const auto inputs = inputs_of(normal, frame);
        ValueId* number =
            normal.is_number ? &number_of(normal.op, inputs, frame, block_id) : nullptr;
        if (number != nullptr && *number != nothing) {
            bind(frame, node->output(), *number);
            return;
        }
        const bool writes = is_writing(node);
        writing_ += writes ? 1 : 0;
        settings_ += node->kind() == c10::prim::SetAttr ? 1 : 0;
        FlatNode& made = add(node, frame, block_id, normal.op);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            take(made, inputs[i], normal.inputs[i]);
            if (node->kind().is_prim() && value(made.inputs.back().value).parts != nothing) {
                escape(made.inputs.back().value);
            }
        }
        if (normal.merges_input) {
            made.merged = value(made.inputs[0].value).node;
            const FlatInput inner = graph.node(made.merged).inputs[0];
            // The merged node has its own use; what it reads is what this one reads.
            made.inputs[0] = inner;
            value(inner.value).users.push_back(static_cast<std::int32_t>(graph.nodes.size()) - 1);
        }
        if (number != nullptr) {
            *number = made.outputs[0];
            value(*number).kind = ValueKind::number;
        }
        settle(made);
    }

    c10::SmallVector<ValueId, 5> inputs_of(const Normal& normal, std::int32_t frame) {
        c10::SmallVector<ValueId, 5> inputs;
        for (jit::Value* input : normal.inputs) {
            inputs.push_back(known(frame, input));
        }
        for (const auto& [index, constant] : normal.literals) {
            inputs[index] = fresh(frame, normal.inputs[index]);
            set_constant(inputs[index], constant);
        }
        return inputs;
    }

    // What a trace computes again for every use is one value. Nothing: not seen yet.
    ValueId& number_of(c10::Symbol op, const c10::SmallVector<ValueId, 5>& inputs,
                       std::int32_t frame, std::int32_t block_id) {
        std::vector<std::int64_t> key{static_cast<c10::unique_t>(op), frame, block_id};
        for (const ValueId id : inputs) {
            const c10::IValue* held = graph.constant_of(id);
            const bool fixed = held != nullptr && held->isInt();
            key.insert(key.end(), {fixed ? 1 : 0, fixed ? held->toInt() : id});
        }
        return numbers_.emplace(std::move(key), nothing).first->second;
    }

    static bool is_writing(const jit::Node* node) {
        if (node->kind() == c10::prim::SetAttr) {
            return true;
        }
        const auto* schema = node->maybeSchema();
        return schema != nullptr && schema->is_mutable();
    }

    ValueId part_of(ValueId whole, std::int64_t index, jit::Node* node, std::int32_t frame,
                    std::int32_t block_id) {
        const auto parts = value(whole).parts;
        if (parts != nothing) {
            const auto& all = graph.parts[static_cast<std::size_t>(parts)];
            const auto at = index < 0 ? index + static_cast<std::int64_t>(all.size()) : index;
            return at >= 0 && at < static_cast<std::int64_t>(all.size())
                       ? all[static_cast<std::size_t>(at)].value
                       : nothing;
        }
        if (value(whole).kind == ValueKind::tuple || index < 0 || index > 1000) {
            return nothing;
        }
        FlatNode& made = add(node, frame, block_id, items_op(), false);
        take(made, whole, node->input(0));
        const ValueId id = fresh(frame, node->output());
        value(id).output = static_cast<std::int32_t>(index);
        value(id).node = static_cast<std::int32_t>(graph.nodes.size()) - 1;
        made.outputs.push_back(id);
        value(id).dtype = known_dtype(graph, made);
        return id;
    }

    FlatNode& add(jit::Node* node, std::int32_t frame, std::int32_t block_id, c10::Symbol op,
                  bool outputs = true) {
        if (graph.nodes.size() >= limits_.nodes) {
            throw TooLarge{"with every call followed it has more than " +
                           std::to_string(limits_.nodes) + " operations"};
        }
        const auto index = static_cast<std::int32_t>(graph.nodes.size());
        FlatNode made;
        made.op = op;
        made.node = node;
        made.frame = frame;
        made.block = block_id;
        if (outputs) {
            for (std::size_t i = 0; i < node->outputs().size(); ++i) {
                const ValueId id =
                    bind(frame, node->outputs()[i], fresh(frame, node->outputs()[i]));
                value(id).node = index;
                value(id).output = static_cast<std::int32_t>(i);
                made.outputs.push_back(id);
            }
        }
        graph.nodes.push_back(std::move(made));
        graph.writes.push_back(writing_);
        graph.by_op[op].push_back(index);
        return graph.nodes.back();
    }

    void take(FlatNode& node, ValueId id, jit::Value* from) {
        node.inputs.push_back({id, from, node.frame});
        value(id).users.push_back(static_cast<std::int32_t>(&node - graph.nodes.data()));
        if (value(id).parts != nothing) {
            const auto parts = graph.parts[static_cast<std::size_t>(value(id).parts)];
            for (const FlatInput& part : parts) {
                value(part.value)
                    .users.push_back(static_cast<std::int32_t>(&node - graph.nodes.data()));
            }
        }
    }

    void settle(FlatNode& node) {
        const c10::ScalarType dtype = known_dtype(graph, node);
        for (const ValueId id : node.outputs) {
            if (value(id).kind != ValueKind::number) {
                value(id).dtype = dtype;
            }
        }
    }

    // How many nodes each frame has with the calls that it makes.
    void finish() {
        for (const FlatNode& node : graph.nodes) {
            bool used = node.outputs.empty();
            for (const ValueId id : node.outputs) {
                used = used || value(id).escapes || !value(id).users.empty();
            }
            frame_at(node.frame).nodes += used ? 1 : 0;
        }
        for (std::size_t i = graph.frames.size(); i-- > 1;) {
            if (graph.frames[i].parent != nothing) {
                frame_at(graph.frames[i].parent).nodes += graph.frames[i].nodes;
            }
        }
    }

    FlatLimits limits_;
    std::int32_t blocks_ = 0;
    std::int32_t writing_ = 0;
    std::int32_t settings_ = 0;  // how often an attribute has been set
    std::map<std::vector<std::int64_t>, ValueId> numbers_;
    struct ReadAttribute {
        std::int32_t settings = 0;
        ValueId value = nothing;
    };
    std::unordered_map<const void*, std::unordered_map<std::string, ReadAttribute>> attributes_;
};

template <typename Fill>
tl::expected<FlatGraph, std::string> flattened(const FlatLimits& limits, const Fill& fill) {
    Flattener flattener(limits);
    try {
        fill(flattener);
    } catch (const TooLarge& problem) {
        return tl::make_unexpected(problem.what);
    }
    return std::move(flattener.graph);
}

}  // namespace

tl::expected<FlatGraph, std::string> flatten(const jit::Module& root, const FlatLimits& limits) {
    return flattened(limits, [&](Flattener& flattener) { flattener.root(root); });
}

tl::expected<FlatGraph, std::string> flatten(const std::shared_ptr<jit::Graph>& graph,
                                             std::vector<FlatInput>& results,
                                             const FlatLimits& limits) {
    return flattened(limits, [&](Flattener& flattener) { flattener.single(graph, results); });
}

}  // namespace twinkle::runtime
