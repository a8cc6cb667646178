#include "runtime/prepack/moved_weights.h"

#include "base/huge_pages.h"
#include "runtime/prepack/held_weights.h"
#include "runtime/prepack/weight_calls.h"

#include <unordered_map>
#include <unordered_set>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Smaller ones stay in the second cache, or are too few to matter.
constexpr std::size_t large = std::size_t{256} << 10;

// In the order in which they are met.
struct Held {
    std::vector<c10::TensorImpl*> tensors;
    std::unordered_map<c10::TensorImpl*, std::vector<Slot>> slots;
};

Held tensors_of(const jit::Module& model) {
    Held held;
    std::unordered_set<const c10::ivalue::Object*> seen;
    for (const jit::Module& module : model.modules()) {
        c10::ivalue::Object* const object = module._ivalue().get();
        const std::size_t count = seen.insert(object).second ? object->slots().size() : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const c10::IValue& value = object->getSlot(i);
            if (!value.isTensor() || !value.toTensor().defined()) {
                continue;
            }
            c10::TensorImpl* const tensor = value.toTensor().unsafeGetTensorImpl();
            if (held.slots[tensor].empty()) {
                held.tensors.push_back(tensor);
            }
            held.slots[tensor].emplace_back(object, i);
        }
    }
    return held;
}

// Whether a weight may be moved: only from LibTorch's own memory.
bool may_move(const at::Tensor& weight, std::size_t slots) {
    return is_held_by_slots_alone(weight, slots) && !weight.is_quantized() &&
           weight.nbytes() >= large && weight.is_contiguous() && !weight.is_conj() &&
           !weight.is_neg() &&
           weight.storage().data_ptr().get_deleter() == c10::GetAllocator(at::kCPU)->raw_deleter();
}

void move(const at::Tensor& weight, const std::vector<Slot>& slots, WeightMemory& memory) {
    const at::Tensor moved = memory.copy(weight).set_requires_grad(weight.requires_grad());
    for (const auto& [object, index] : slots) {
        object->setSlot(index, moved);
    }
}

}  // namespace

void move_weights(const jit::Module& model, WeightMemory& memory, FreedWeights& freed) {
    if (!base::has_huge_pages()) {
        return;
    }
    const Held held = tensors_of(model);
    for (c10::TensorImpl* const tensor : held.tensors) {
        const std::vector<Slot>& slots = held.slots.at(tensor);
        const at::Tensor weight = slots.front().first->getSlot(slots.front().second).toTensor();
        if (may_move(weight, slots.size())) {
            move(weight, slots, memory);
            freed.add(weight.nbytes());
        }
    }
}

}  // namespace twinkle::runtime
