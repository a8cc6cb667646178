#include "runtime/verify/served_numbers.h"

#include "runtime/graph/graph_walk.h"
#include "runtime/graph/past_runs.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

namespace twinkle::runtime {

namespace jit = torch::jit;

namespace {

// Accepts those of LibTorch's CanonicalizeOps.
bool takes_a_number(const jit::Use& use) {
    const jit::Node& node = *use.user;
    return use.offset == 1 &&
           (node.matches("aten::add(Tensor self, Tensor other, *, Scalar alpha) -> Tensor") ||
            node.matches("aten::sub(Tensor self, Tensor other, *, Scalar alpha) -> Tensor") ||
            node.matches("aten::mul(Tensor self, Tensor other) -> Tensor") ||
            node.matches("aten::div(Tensor self, Tensor other) -> Tensor"));
}

bool is_number(const at::Tensor& tensor) {
    const auto dtype = tensor.scalar_type();
    return tensor.dim() == 0 && !tensor.is_meta() &&
           (c10::isFloatingType(dtype) || c10::isIntegralType(dtype, /*includeBool=*/false));
}

// Adds a number next to the tensor constant, in the same block and scope, for users that take a
// number. Returns whether anything changed.
bool take_as_number(jit::Node& constant) {
    jit::Value* number = nullptr;
    for (const jit::Use& use : std::vector<jit::Use>(constant.output()->uses())) {
        if (!takes_a_number(use)) {
            continue;
        }
        if (number == nullptr) {
            const jit::WithInsertPoint behind(constant.next());
            number = constant.owningGraph()->insertConstant(
                constant.t(c10::attr::value).item(), constant.sourceRange(), constant.scope());
        }
        use.user->replaceInput(use.offset, number);
    }
    return number != nullptr;
}

}  // namespace

void take_numbers_as_served(const jit::Module& model) {
    bool changed = false;
    for (jit::Node* constant : tensor_constants(model)) {
        if (is_number(constant->t(c10::attr::value))) {
            changed = take_as_number(*constant) || changed;
        }
    }
    if (changed) {
        discard_past_runs(model);
    }
}

}  // namespace twinkle::runtime
