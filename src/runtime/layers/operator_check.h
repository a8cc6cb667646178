#pragma once
// Whether the operators that compiled code calls can be run where the model will run, and trained.

#include "runtime/graph/keep_reason.h"

#include <ATen/core/operator_name.h>
#include <torch/csrc/jit/api/function_impl.h>

#include <optional>
#include <string>

namespace twinkle::runtime {

// What will be asked of the code.
struct OperatorUse {
    std::string device;   // "cpu", "cuda:1"; of others nothing is known
    bool trains = false;  // gradients
};

// An operator that is called whatever the inputs are must have a kernel for the device. One that is
// called outside of an autograd.Function needs an autograd kernel to be trained, or gradients would
// be silently wrong. None: all have, as far as is known (known_facts).
std::optional<KeepReason> unusable_operator(torch::jit::Function& function, const OperatorUse& use);

// Whether gradients come through an operator, which need not be there.
bool has_autograd_kernel(const c10::OperatorName& name);

}  // namespace twinkle::runtime
