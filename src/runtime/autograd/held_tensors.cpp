#include "runtime/autograd/held_tensors.h"

#include <functional>

namespace twinkle::runtime {

namespace {

using Exchange = std::function<at::Tensor(const at::Tensor&)>;

// The same value with other tensors. New containers: the old ones may be shared.
c10::IValue exchanged(const c10::IValue& value, const Exchange& exchange) {
    if (value.isTensor()) {
        return exchange(value.toTensor());
    }
    if (value.isTuple()) {
        std::vector<c10::IValue> elements;
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            elements.push_back(exchanged(element, exchange));
        }
        return c10::ivalue::Tuple::create(std::move(elements));
    }
    if (value.isList()) {
        const auto list = value.toList();
        c10::impl::GenericList copy(list.elementType());
        copy.reserve(list.size());
        for (std::size_t i = 0; i < list.size(); ++i) {
            copy.push_back(exchanged(list.get(i), exchange));
        }
        return copy;
    }
    if (value.isGenericDict()) {
        const auto dict = value.toGenericDict();
        c10::impl::GenericDict copy(dict.keyType(), dict.valueType());
        for (const auto& entry : dict) {
            copy.insert(entry.key(), exchanged(entry.value(), exchange));
        }
        return copy;
    }
    return value;
}

void exchange_all(c10::ivalue::Object& object, const Exchange& exchange) {
    for (std::size_t i = 0; i < object.slots().size(); ++i) {
        object.setSlot(i, exchanged(object.getSlot(i), exchange));
    }
}

}  // namespace

std::vector<at::Tensor> take_tensors(c10::ivalue::Object& object) {
    std::vector<at::Tensor> taken;
    exchange_all(object, [&](const at::Tensor& tensor) {
        taken.push_back(tensor);
        return at::Tensor();
    });
    return taken;
}

void put_tensors(c10::ivalue::Object& object, const std::vector<at::Tensor>& tensors) {
    std::size_t next = 0;
    exchange_all(object, [&](const at::Tensor&) { return tensors.at(next++); });
}

}  // namespace twinkle::runtime
