#include "runtime/graph/graph_values.h"

#include <torch/csrc/jit/ir/constants.h>

#include <unordered_set>
#include <vector>

namespace twinkle::runtime {

using torch::jit::Node;
using torch::jit::Value;

const Value* behind_casts(const Value* value) {
    static const std::unordered_set<std::string> transparent = {
        "aten::to", "aten::detach", "aten::contiguous", "aten::alias", "aten::type_as"};
    while (transparent.contains(value->node()->kind().toQualString())) {
        value = value->node()->input(0);
    }
    return value;
}

bool passes_through(const Value* value) {
    return behind_casts(value)->node()->kind() == c10::prim::Param;
}

namespace {

std::optional<c10::IValue> constant_list(const Node* list) {
    if (list->inputs().empty()) {
        return std::nullopt;
    }
    std::vector<std::int64_t> integers;
    for (const Value* element : list->inputs()) {
        const auto one = torch::jit::toIValue(element);
        if (!one || !one->isInt()) {
            return std::nullopt;
        }
        integers.push_back(one->toInt());
    }
    return integers;
}

}  // namespace

std::optional<c10::IValue> constant_value(const Value* value) {
    if (value->node()->kind() == c10::prim::ListConstruct) {
        return constant_list(value->node());
    }
    auto constant = torch::jit::toIValue(value);
    if (constant && constant->isTensor()) {
        const at::Tensor tensor = constant->toTensor();
        if (!tensor.defined() || tensor.dim() != 0 || !tensor.is_floating_point() ||
            tensor.is_meta()) {
            return std::nullopt;
        }
        return tensor.item<double>();
    }
    return constant;
}

std::optional<double> constant_number(const Value* value) {
    const auto constant = constant_value(value);
    if (constant && constant->isDouble()) {
        return constant->toDouble();
    }
    if (constant && constant->isInt()) {
        return static_cast<double>(constant->toInt());
    }
    return std::nullopt;
}

std::optional<std::string> own_attribute(const Value* value) {
    const Node* node = value->node();
    if (node->kind() != c10::prim::GetAttr || node->input()->node()->kind() != c10::prim::Param ||
        node->input()->offset() != 0) {
        return std::nullopt;
    }
    return node->s(c10::attr::name);
}

std::optional<c10::IValue> held_value(const Value* value, const c10::ivalue::Object& self) {
    std::vector<std::string> path;
    for (; value->node()->kind() == c10::prim::GetAttr; value = value->node()->input()) {
        path.push_back(value->node()->s(c10::attr::name));
    }
    if (path.empty()) {
        return torch::jit::toIValue(value);
    }
    const auto& inputs = value->owningGraph()->inputs();
    if (inputs.empty() || value != inputs[0]) {
        return std::nullopt;
    }
    const c10::ivalue::Object* object = &self;
    for (; !path.empty(); path.pop_back()) {
        const auto slot = object->type()->findAttributeSlot(path.back());
        if (!slot) {
            return std::nullopt;
        }
        const c10::IValue& found = object->getSlot(*slot);
        if (path.size() == 1) {
            return found;
        }
        if (!found.isObject()) {
            return std::nullopt;
        }
        object = &found.toObjectRef();
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
