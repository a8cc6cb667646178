#include "runtime/prepack/prepacked_weights.h"

#include "runtime/graph/graph_values.h"
#include "runtime/graph/graph_walk.h"
#include "runtime/graph/inlined_size.h"
#include "runtime/prepack/weight_memory.h"
#include "runtime/prepack/weight_uses.h"

#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/inliner.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

using Slot = std::pair<c10::ivalue::Object*, std::size_t>;

// How a weight is to be prepacked; null: calls differ.
struct Prepacking {
    const PrepackOperator* how = nullptr;
    std::vector<c10::IValue> arguments;

    bool operator==(const Prepacking&) const = default;
};

// Of a method that is read. The largest models have some ten thousand.
constexpr std::size_t most_nodes = 500'000;

// Calls of such operators in all that the root's methods do.
class PrepackCalls {
public:
    PrepackCalls(const jit::Module& model, const PrepackOperators& operators,
                 const WeightUses& uses)
        : root_(model._ivalue()), operators_(operators), uses_(uses) {
        for (const jit::Method& method : model.get_methods()) {
            if (inlined_nodes(method, most_nodes) == most_nodes) {
                all_seen_ = false;
                return;
            }
            auto graph = method.graph()->copy();
            jit::Inline(*graph);
            jit::ConstantPropagationImmutableTypes(graph);
            for_each_node(graph->block(), [&](const jit::Node* node) { read(node, *graph); });
        }
    }

    // In the order of the calls; none, unless it is clear which weight each call gets.
    std::vector<std::pair<Slot, Prepacking>> slots() const {
        return all_seen_ ? slots_ : std::vector<std::pair<Slot, Prepacking>>();
    }

private:
    void read(const jit::Node* node, const jit::Graph& graph) {
        const auto found = operators_.find(node->kind());
        if (found == operators_.end()) {
            return;
        }
        const auto slot = slot_of(node->input(found->second.weight), graph);
        if (!slot) {
            return;
        }
        Prepacking wanted{&found->second, {}};
        for (const std::size_t at : found->second.arguments) {
            const auto constant = jit::toIValue(node->input(at));
            if (!constant) {
                wanted = {};
                break;
            }
            wanted.arguments.push_back(*constant);
        }
        const auto [entry, first] = places_.emplace(*slot, slots_.size());
        if (first) {
            slots_.emplace_back(*slot, wanted);
        } else if (!(slots_[entry->second].second == wanted)) {
            slots_[entry->second].second = {};
        }
    }

    std::optional<Slot> slot_of(const jit::Value* value, const jit::Graph& graph) {
        if (value->node()->kind() != c10::prim::GetAttr) {
            return std::nullopt;
        }
        const jit::Value* const owner = value->node()->input();
        const std::string& name = value->node()->s(c10::attr::name);
        c10::ivalue::Object* object = root_.get();
        if (owner != graph.inputs()[0]) {
            const auto held = held_value(owner, *root_);
            if (!held || !held->isObject()) {
                all_seen_ = false;
                return std::nullopt;
            }
            object = held->toObject().get();
        }
        const auto at = object->type()->findAttributeSlot(name);
        if (!at || !uses_.may_prepack(*object->type(), name)) {
            return std::nullopt;
        }
        return Slot{object, *at};
    }

    c10::intrusive_ptr<c10::ivalue::Object> root_;
    const PrepackOperators& operators_;
    const WeightUses& uses_;
    std::vector<std::pair<Slot, Prepacking>> slots_;
    std::map<Slot, std::size_t> places_;
    bool all_seen_ = true;
};

// A model that was made without the attribute does not train.
bool is_training(const jit::Module& model) {
    if (!model.hasattr("training")) {
        return false;
    }
    const c10::IValue training = model.attr("training");
    return !training.isBool() || training.toBool();
}

// Whether the slot and `weight` are all that holds it.
bool is_alone(const at::Tensor& weight) {
    return weight.defined() && weight.is_cpu() && weight.layout() == at::kStrided &&
           weight.use_count() == 2 && weight.storage().use_count() == 1;
}

bool prepack(const Slot& slot, const Prepacking& prepacking, WeightMemory& memory) {
    const c10::IValue& value = slot.first->getSlot(slot.second);
    const at::Tensor weight = value.isTensor() ? value.toTensor() : at::Tensor();
    if (!is_alone(weight)) {
        return false;
    }
    jit::Stack stack{weight};
    stack.insert(stack.end(), prepacking.arguments.begin(), prepacking.arguments.end());
    prepacking.how->prepack.callBoxed(stack);
    if (stack.empty() || !stack[0].isTensor() || !stack[0].toTensor().defined()) {
        return false;
    }
    const at::Tensor packed = memory.copy(stack[0].toTensor());
    slot.first->setSlot(slot.second, packed.set_requires_grad(weight.requires_grad()));
    return true;
}

}  // namespace

std::size_t prepack_weights(const jit::Module& model) {
    const PrepackOperators operators = prepack_operators();
    if (operators.empty() || is_training(model)) {
        return 0;
    }
    std::size_t count = 0;
    try {
        const WeightUses uses(model, operators);
        if (!uses.may_prepack_any()) {
            return 0;
        }
        const torch::NoGradGuard no_grad;
        const auto slots = PrepackCalls(model, operators, uses).slots();
        WeightMemory memory;
        for (const auto& [slot, prepacking] : slots) {
            count += prepacking.how != nullptr && prepack(slot, prepacking, memory) ? 1 : 0;
        }
    } catch (const std::exception&) {
        return count;  // the model computes without the others, too
    }
    return count;
}

}  // namespace twinkle::runtime
