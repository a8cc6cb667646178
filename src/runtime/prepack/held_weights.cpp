#include "runtime/prepack/held_weights.h"

#include <torch/csrc/autograd/variable.h>

namespace twinkle::runtime {

namespace {

namespace autograd = torch::autograd::impl;

bool is_plain_leaf(const at::Tensor& weight) {
    if (autograd::get_autograd_meta(weight) == nullptr) {
        return true;
    }
    return weight.is_leaf() && autograd::hooks(weight).empty() &&
           !autograd::try_get_grad_accumulator(weight) &&
           !(weight.requires_grad() && weight.grad().defined());
}

}  // namespace

bool is_held_by_slots_alone(const at::Tensor& weight, std::size_t slots) {
    return weight.defined() && weight.is_cpu() && weight.layout() == at::kStrided &&
           weight.use_count() == slots + 1 && weight.storage().use_count() == 1 &&
           is_plain_leaf(weight);
}

}  // namespace twinkle::runtime
