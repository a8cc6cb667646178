#pragma once
// Gradients as a training program computes them: of every floating-point input and parameter.

#include "runtime/model/inputs.h"
#include "runtime/verify/comparison.h"

#include <torch/script.h>

#include <functional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct Gradients {
    struct One {
        std::string of;    // "input 1", "parameter weight"
        at::Tensor value;  // undefined: there is none
    };
    std::vector<One> all;
};

// Runs a method forward and backward. The incoming gradient is a fixed pattern, exact in every
// dtype. Sets requires_grad on the parameters, for good.
Gradients gradients_of(const torch::jit::Module& module, const std::string& method,
                       const Inputs& inputs);

// The same work without a result, prepared: forward, and backward to the leaves of gradients_of().
std::function<void()> training_step(const torch::jit::Module& module, const std::string& method,
                                    const Inputs& inputs);

// Compares by the rule of comparison.h, in the Euclidean norm; returns why the result is not right,
// or nothing. A missing gradient equals one of zeros.
std::string wrong_gradient(const Gradients& result, const Gradients& original,
                           const Gradients& reference, const Tolerance& tolerance = {});

}  // namespace twinkle::runtime
