#include "runtime/prepack/prepacked_weights.h"

#include "runtime/prepack/freed_weights.h"
#include "runtime/prepack/held_weights.h"
#include "runtime/prepack/moved_weights.h"
#include "runtime/prepack/prepack_operators.h"
#include "runtime/prepack/weight_calls.h"
#include "runtime/prepack/weight_memory.h"

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// A model that was made without the attribute does not train.
bool is_training(const jit::Module& model) {
    if (!model.hasattr("training")) {
        return false;
    }
    const c10::IValue training = model.attr("training");
    return !training.isBool() || training.toBool();
}

bool prepack(const Slot& slot, const Prepacking& prepacking, WeightMemory& memory) {
    const c10::IValue& value = slot.first->getSlot(slot.second);
    const at::Tensor weight = value.isTensor() ? value.toTensor() : at::Tensor();
    if (!is_held_by_slots_alone(weight, 1)) {
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

std::vector<std::pair<Slot, Prepacking>> calls_of(const jit::Module& model,
                                                  const PrepackOperators& operators) {
    if (operators.empty() || is_training(model)) {
        return {};
    }
    try {
        return weight_calls(model, operators);
    } catch (const std::exception&) {
        return {};  // code that LibTorch itself finds wrong
    }
}

}  // namespace

bool may_prepack_weights(const jit::Module& model) {
    return !calls_of(model, prepack_operators()).empty();
}

std::size_t prepack_weights(const jit::Module& model) {
    const PrepackOperators operators = prepack_operators();
    std::size_t count = 0;
    const c10::InferenceMode no_inference(false);  // its tensors would remain so
    const torch::NoGradGuard no_grad;
    WeightMemory memory;
    FreedWeights freed;
    for (const auto& [slot, prepacking] : calls_of(model, operators)) {
        try {
            if (prepack(slot, prepacking, memory)) {
                ++count;
                freed.add(slot.first->getSlot(slot.second).toTensor().nbytes());
            }
        } catch (const std::exception&) {
            continue;  // the model computes with it as it is, too
        }
    }
    try {
        if (!is_training(model)) {
            move_weights(model, memory, freed);
        }
    } catch (const std::exception&) {
        return count;  // the others stay where they are
    }
    return count;
}

}  // namespace twinkle::runtime
