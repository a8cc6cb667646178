#include "runtime/model/nested_values.h"

#include <torch/script.h>

#include <algorithm>

namespace twinkle::runtime {

namespace {

using Change = std::function<at::Tensor(const at::Tensor&)>;

c10::IValue changed_list(const c10::List<c10::IValue>& list, const Change& change) {
    c10::impl::GenericList result(list.elementType());
    result.reserve(list.size());
    for (const c10::IValue& element : list) {
        result.push_back(with_tensors(element, change));
    }
    return result;
}

c10::IValue changed_tuple(const c10::ivalue::Tuple& tuple, const Change& change) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : tuple.elements()) {
        elements.push_back(with_tensors(element, change));
    }
    // The names of a named tuple are in its type.
    return c10::ivalue::Tuple::createNamed(std::move(elements), tuple.type());
}

c10::IValue changed_dict(const c10::Dict<c10::IValue, c10::IValue>& dict, const Change& change) {
    c10::impl::GenericDict result(dict.keyType(), dict.valueType());
    for (const auto& entry : dict) {
        result.insert(entry.key(), with_tensors(entry.value(), change));
    }
    return result;
}

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) {
            tensors.push_back(value.toTensor());
        }
    } else if (value.isTuple()) {
        for (const c10::IValue& element : value.toTupleRef().elements()) {
            collect(element, tensors);
        }
    } else if (value.isList()) {
        for (const c10::IValue& element : value.toListRef()) {
            collect(element, tensors);
        }
    } else if (value.isGenericDict()) {
        for (const auto& entry : value.toGenericDict()) {
            collect(entry.value(), tensors);
        }
    }
}

}  // namespace

c10::IValue with_tensors(const c10::IValue& value, const Change& change) {
    if (value.isTensor()) {
        return value.toTensor().defined() ? c10::IValue(change(value.toTensor())) : value;
    }
    if (value.isTuple()) {
        return changed_tuple(value.toTupleRef(), change);
    }
    if (value.isList()) {
        return changed_list(value.toList(), change);
    }
    if (value.isGenericDict()) {
        return changed_dict(value.toGenericDict(), change);
    }
    return value;
}

Values with_tensors(const Values& values, const Change& change) {
    Values result;
    for (const c10::IValue& value : values) {
        result.push_back(with_tensors(value, change));
    }
    return result;
}

c10::IValue cloned(const c10::IValue& value) {
    const torch::NoGradGuard no_grad;
    return with_tensors(value, [](const at::Tensor& tensor) { return tensor.clone(); });
}

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
    std::vector<at::Tensor> tensors;
    collect(value, tensors);
    return tensors;
}

std::vector<at::Tensor> tensors_of(const Values& values) {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : values) {
        collect(value, tensors);
    }
    return tensors;
}

bool is_plain(const c10::IValue& value) {
    if (value.isTuple()) {
        const auto& elements = value.toTupleRef().elements();
        return std::all_of(elements.begin(), elements.end(), is_plain);
    }
    if (value.isList()) {
        const auto elements = value.toListRef();
        return std::all_of(elements.begin(), elements.end(), is_plain);
    }
    if (value.isGenericDict()) {
        for (const auto& entry : value.toGenericDict()) {
            if (!is_plain(entry.key()) || !is_plain(entry.value())) {
                return false;
            }
        }
        return true;
    }
    return value.isTensor() || value.isNone() || value.isBool() || value.isInt() ||
           value.isDouble() || value.isComplexDouble() || value.isString() || value.isDevice();
}

}  // namespace twinkle::runtime
