#include "runtime/source/known_value.h"

#include <torch/csrc/jit/ir/constants.h>

namespace twinkle::runtime {

namespace jit = torch::jit;
namespace py = twinkle::python;

std::optional<py::ConstantValue> known_constant(const jit::Value* value) {
    constexpr std::size_t longest = 64;
    if (value->type()->kind() == c10::TypeKind::NoneType) {
        return py::None{};
    }
    const auto constant = jit::toIValue(value);
    if (!constant) {
        return std::nullopt;
    }
    if (constant->isNone()) {
        return py::None{};
    }
    if (constant->isBool()) {
        return constant->toBool();
    }
    if (constant->isString() && constant->toStringRef().size() <= longest) {
        return constant->toStringRef();
    }
    return std::nullopt;
}

std::string constant_key(const py::ConstantValue& value) {
    if (const auto* flag = std::get_if<bool>(&value)) {
        return *flag ? "True" : "False";
    }
    const auto* text = std::get_if<std::string>(&value);
    return text ? std::to_string(text->size()) + "'" + *text + "'" : "None";
}

}  // namespace twinkle::runtime
