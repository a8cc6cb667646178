#pragma once
// Whether compiled code can be trained: an operator that it calls outside of an autograd.Function
// needs an autograd kernel, or gradients would be silently wrong.

#include "runtime/selection/keep_reason.h"

#include <torch/csrc/jit/api/function_impl.h>

#include <optional>

namespace twinkle::runtime {

std::optional<KeepReason> unfit_for_training(torch::jit::Function& function);

}  // namespace twinkle::runtime
