#include "runtime/prepack/known_values.h"

#include <torch/csrc/jit/ir/constants.h>

#include <exception>
#include <set>

namespace twinkle::runtime {

namespace jit = torch::jit;

c10::ivalue::Object* KnownValue::object() const {
    return constant && constant->isObject() ? &constant->toObjectRef() : nullptr;
}

KnownValue KnownValues::of(const jit::Value* value) const {
    const auto found = values_.find(value);
    if (found != values_.end()) {
        return found->second;
    }
    return {.constant = jit::toIValue(value)};
}

void KnownValues::set(const jit::Value* value, KnownValue known) {
    values_[value] = std::move(known);
}

namespace {

// These have one size: text may grow with every step.
bool is_number(const c10::IValue& value) {
    return value.isInt() || value.isBool() || value.isDouble() || value.isNone();
}

// Kernels decide by these. Other operators may depend on more than their arguments.
bool is_computed(c10::Symbol kind) {
    using namespace c10::aten;
    static const std::set<c10::Symbol> all{eq,      ne,     lt,     le,        gt,  ge,  __not__,
                                           __and__, __or__, __is__, __isnot__, add, sub, mul};
    return all.count(kind) != 0;
}

}  // namespace

void KnownValues::compute(const jit::Node* node) {
    if (!is_computed(node->kind())) {
        return;
    }
    jit::Stack stack;
    for (const jit::Value* const input : node->inputs()) {
        auto known = of(input).constant;
        if (!known || !is_number(*known)) {
            return;
        }
        stack.push_back(*std::move(known));
    }
    try {
        node->getOperation()(stack);
    } catch (const std::exception&) {
        return;  // it may not run at all
    }
    if (stack.size() == 1 && is_number(stack[0])) {
        set(node->output(), {.constant = stack[0]});
    }
}

}  // namespace twinkle::runtime
