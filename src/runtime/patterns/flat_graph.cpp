#include "runtime/patterns/flat_graph.h"

#include "runtime/graph/class_name.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/patterns/attribute_reads.h"
#include "runtime/patterns/flat_builder.h"
#include "runtime/patterns/flat_operations.h"
#include "runtime/patterns/flat_rules.h"
#include "runtime/patterns/in_place.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Follows the nodes of a graph, and those of every call in it.
class Flattener {
public:
    explicit Flattener(const FlatLimits& limits, bool never_trains,
                       std::set<std::string> changing = {})
        : to_(limits),
          attributes_(to_, std::move(changing), never_trains),
          operations_(to_, attributes_) {}

    void root(const jit::Module& module) {
        for (jit::Function* method : module.type()->methods()) {
            auto* compiled = jit::tryToGraphFunction(*method);
            if (compiled == nullptr || is_of_a_kernel(*method)) {
                continue;
            }
            const auto frame = to_.enter(nothing, nullptr, method, compiled->graph());
            to_.frame(frame).object = module._ivalue().get();
            const auto inputs = compiled->graph()->inputs();
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const ValueId id = to_.define(frame, inputs[i]);
                if (i == 0) {
                    attributes_.set_object(id, module._ivalue());
                }
            }
            block(compiled->graph()->block(), frame, to_.new_block());
            for (jit::Value* output : compiled->graph()->outputs()) {
                to_.escape(to_.known(frame, output));
            }
        }
        settle_in_place(to_.graph);
        to_.finish();
    }

    void single(const std::shared_ptr<jit::Graph>& alone, std::vector<FlatInput>& results) {
        const auto frame = to_.enter(nothing, nullptr, nullptr, alone);
        for (jit::Value* input : alone->inputs()) {
            to_.define(frame, input);
        }
        block(alone->block(), frame, to_.new_block());
        for (jit::Value* output : alone->outputs()) {
            results.push_back({to_.known(frame, output), frame, output});
        }
        to_.finish();
    }

    const std::set<std::string>& set_names() const { return attributes_.set_names(); }
    FlatGraph take() { return std::move(to_.graph); }

private:
    void block(jit::Block* nodes, std::int32_t frame, std::int32_t block_id) {
        const FlatBuilder::Nested nested(to_);
        for (jit::Node* node : nodes->nodes()) {
            fetch_early(node->next());
            visit(node, frame, block_id);
        }
    }

    // A large model is not in the processor's caches: waiting for it takes most of the time.
    static void fetch_early(const jit::Node* node) {
        constexpr std::size_t line = 64;
        const void* begin = node;
        for (std::size_t at = 0; at < sizeof(jit::Node); at += line) {
            __builtin_prefetch(static_cast<const char*>(begin) + at);
        }
    }

    void visit(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        switch (node->kind()) {
            case c10::prim::Constant: return constant(node, frame);
            case c10::prim::GetAttr: return attributes_.read(node, frame);
            case c10::prim::TupleConstruct:
            case c10::prim::ListConstruct: return construct(node, frame);
            case c10::prim::TupleUnpack:
            case c10::prim::ListUnpack: return unpack(node, frame, block_id);
            case c10::prim::CallMethod: return call_method(node, frame, block_id);
            case c10::prim::CallFunction: return call_function(node, frame, block_id);
            case c10::prim::If:
                if (auto* taken = taken_branch(node, frame)) {
                    return branch(node, *taken, frame);
                }
                break;
            default: break;
        }
        if (!node->blocks().empty()) {
            return opaque(node, frame, block_id);
        }
        operations_.add(node, frame, block_id);
    }

    void constant(jit::Node* node, std::int32_t frame) {
        jit::Value* output = node->output();
        const ValueId id = to_.define(frame, output);
        auto held = jit::toIValue(output);
        if (!held) {
            return;
        }
        FlatValue& value = to_.value(id);
        if (held->isTensor() && held->toTensor().defined()) {
            const at::Tensor& tensor = held->toTensor();
            value.dtype = tensor.scalar_type();
            if (auto number = as_number(tensor)) {
                value.kind = ValueKind::number;
                held = std::move(number);
            }
        } else if (held->isNone()) {
            value.kind = ValueKind::other;
        }
        to_.set_constant(id, std::move(*held));
    }

    void construct(jit::Node* node, std::int32_t frame) {
        const ValueId id = to_.define(frame, node->output());
        c10::SmallVector<FlatInput, 4> parts;
        for (jit::Value* input : node->inputs()) {
            parts.push_back({to_.known(frame, input), frame, input});
        }
        to_.value(id).kind =
            node->kind() == c10::prim::TupleConstruct ? ValueKind::tuple : ValueKind::other;
        to_.set_parts(id, std::move(parts));
    }

    void unpack(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        const ValueId whole = to_.known(frame, node->input());
        const auto* parts = to_.parts_of(whole);
        const auto outputs = node->outputs();
        if (parts != nullptr && parts->size() == outputs.size()) {
            for (std::size_t i = 0; i < outputs.size(); ++i) {
                to_.bind(frame, outputs[i], (*parts)[i].value);
            }
            return;
        }
        FlatNode& made = to_.add(node, frame, block_id, items_op());
        to_.take(made, whole, node->input());
        to_.settle(made);
    }

    void call_method(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        const auto object = to_.value(to_.known(frame, node->input(0))).object;
        if (object == nothing) {
            return opaque(node, frame, block_id);
        }
        const auto& holder = to_.graph.objects[static_cast<std::size_t>(object)];
        jit::Function* method = holder->type()->findMethod(node->s(c10::attr::name));
        auto* compiled = method == nullptr ? nullptr : jit::tryToGraphFunction(*method);
        if (compiled == nullptr || is_of_a_kernel(*method) ||
            compiled->graph()->inputs().size() != node->inputs().size()) {
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
            to_.graph.has_stand_ins = true;
            return opaque(node, frame, block_id);
        }
        if (!functional(name, node, frame, block_id)) {
            follow(node, node->inputs().slice(1), frame, block_id, *type->function(),
                   compiled->graph());
        }
    }

    // Whether it is known as an operator.
    bool functional(const std::string& name, jit::Node* node, std::int32_t frame,
                    std::int32_t block_id) {
        const FunctionalOperator* known_as = functional_operator(name);
        if (known_as == nullptr) {
            return false;
        }
        const auto argument = [&](std::size_t i) { return to_.known(frame, node->input(i + 1)); };
        const auto all = [&](const std::vector<std::size_t>& which, auto holds) {
            return std::all_of(which.begin(), which.end(),
                               [&](std::size_t i) { return holds(to_.graph, argument(i)); });
        };
        if (!all(known_as->switched_off, is_false) || !all(known_as->integers, is_integer) ||
            !std::all_of(known_as->numbers.begin(), known_as->numbers.end(), [&](const auto& one) {
                return is_number(to_.graph, argument(one.first), one.second);
            })) {
            return false;
        }
        const bool in_place =
            known_as->in_place && !is_false(to_.graph, argument(*known_as->in_place));
        if (in_place && !is_true(to_.graph, argument(*known_as->in_place))) {
            return false;
        }
        to_.writing += in_place ? 1 : 0;
        FlatNode& made = to_.add(node, frame, block_id, known_as->op);
        made.is_in_place = in_place;
        for (const std::size_t i : known_as->arguments) {
            to_.take(made, argument(i), node->input(i + 1));
        }
        to_.settle(made);
        return true;
    }

    void follow(jit::Node* call, at::ArrayRef<jit::Value*> arguments, std::int32_t frame,
                std::int32_t block_id, jit::Function& function,
                const std::shared_ptr<jit::Graph>& body) {
        const auto inner = to_.enter(frame, call, &function, body);
        for (std::size_t i = 0; i < arguments.size(); ++i) {
            const ValueId id = to_.known(frame, arguments[i]);
            to_.bind(inner, body->inputs()[i], id);
            if (i == 0 && call->kind() == c10::prim::CallMethod) {
                const auto object = to_.value(id).object;
                const auto& self = to_.graph.objects[static_cast<std::size_t>(object)];
                to_.frame(inner).object = self->type()->is_module() ? self.get() : nullptr;
            }
        }
        block(body->block(), inner, block_id);
        for (std::size_t i = 0; i < call->outputs().size(); ++i) {
            to_.bind(frame, call->outputs()[i], to_.known(inner, body->outputs()[i]));
        }
    }

    // Null: it is not known which.
    jit::Block* taken_branch(jit::Node* node, std::int32_t frame) {
        const c10::IValue* held = to_.graph.constant_of(to_.known(frame, node->input()));
        return held != nullptr && held->isBool() ? node->blocks()[held->toBool() ? 0 : 1] : nullptr;
    }

    // A block of its own, like any branch: no place reaches out of it.
    void branch(jit::Node* node, jit::Block& taken, std::int32_t frame) {
        block(&taken, frame, to_.new_block());
        for (std::size_t i = 0; i < node->outputs().size(); ++i) {
            jit::Value* inner = taken.outputs()[i];
            const ValueId id = to_.known(frame, inner);
            // Elements that are computed in the branch cannot be read outside of it.
            if (to_.parts_of(id) != nullptr && inner->node()->owningBlock() == &taken) {
                to_.escape(id);
                to_.define(frame, node->outputs()[i]);
            } else {
                to_.bind(frame, node->outputs()[i], id);
            }
        }
    }

    // It is not understood: it may do anything with its inputs.
    void opaque(jit::Node* node, std::int32_t frame, std::int32_t block_id) {
        FlatNode& made = to_.add(node, frame, block_id, node->kind());
        const auto index = static_cast<std::int32_t>(to_.graph.nodes.size()) - 1;
        for (jit::Value* input : node->inputs()) {
            to_.take(made, to_.known(frame, input), input);
            to_.escape(made.inputs.back().value);
        }
        to_.settle(made);
        if (node->blocks().empty()) {
            ++to_.writing;
            attributes_.forget(node);
            return;
        }
        for (jit::Block* inner : node->blocks()) {
            if (node->kind() == c10::prim::Loop) {
                escape_lists_changed_in(inner, frame);
            }
            const auto inner_id = to_.new_block();
            for (jit::Value* input : inner->inputs()) {
                to_.define(frame, input);
            }
            block(inner, frame, inner_id);
            for (jit::Value* output : inner->outputs()) {
                const ValueId id = to_.known(frame, output);
                to_.add_user(id, to_.graph.node(index));
                to_.escape(id);
            }
        }
    }

    // A later round may change what an earlier one reads.
    void escape_lists_changed_in(jit::Block* body, std::int32_t frame) {
        const FlatBuilder::Nested nested(to_);
        for (jit::Node* node : body->nodes()) {
            for (jit::Block* inner : node->blocks()) {
                escape_lists_changed_in(inner, frame);
            }
            const bool call =
                node->kind() == c10::prim::CallMethod || node->kind() == c10::prim::CallFunction;
            if (!call && !is_writing(node)) {
                continue;
            }
            for (const jit::Value* input : node->inputs()) {
                const ValueId id = to_.graph.value_in(frame, input);
                if (id != nothing && to_.parts_of(id) != nullptr) {
                    to_.escape(id);
                }
            }
        }
    }

    FlatBuilder to_;
    AttributeReads attributes_;
    FlatOperations operations_;
};

}  // namespace

tl::expected<FlatGraph, std::string> flatten(const jit::Module& root, bool never_trains,
                                             const FlatLimits& limits) {
    try {
        // What is set may decide which branches are taken, and so what else is set.
        for (std::set<std::string> changing;;) {
            Flattener flattener(limits, never_trains, changing);
            flattener.root(root);
            const std::size_t known = changing.size();
            changing.insert(flattener.set_names().begin(), flattener.set_names().end());
            if (changing.size() == known) {
                return flattener.take();
            }
        }
    } catch (const TooLarge& problem) {
        return tl::make_unexpected(problem.what);
    }
}

tl::expected<FlatGraph, std::string> flatten(const std::shared_ptr<jit::Graph>& graph,
                                             std::vector<FlatInput>& results,
                                             const FlatLimits& limits) {
    try {
        Flattener flattener(limits, /*never_trains=*/false);
        flattener.single(graph, results);
        return flattener.take();
    } catch (const TooLarge& problem) {
        return tl::make_unexpected(problem.what);
    }
}

}  // namespace twinkle::runtime
