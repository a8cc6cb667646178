#include "runtime/verify/kept_state.h"

namespace twinkle::runtime {

void KeptState::add(const torch::jit::Module& model) {
    for (const torch::jit::Module& module : model.modules()) {
        const auto object = module._ivalue();
        for (std::size_t i = 0; i < object->slots().size(); ++i) {
            const c10::IValue& slot = object->getSlot(i);
            if (slot.isTensor() && slot.toTensor().defined() && !object->type()->is_parameter(i)) {
                slots_.push_back({object, i, slot.toTensor(), slot.toTensor().clone()});
            }
        }
    }
}

void KeptState::restore() const {
    for (const Slot& slot : slots_) {
        slot.tensor.set_data(slot.values.clone());
        slot.object->setSlot(slot.number, slot.tensor);
    }
}

}  // namespace twinkle::runtime
