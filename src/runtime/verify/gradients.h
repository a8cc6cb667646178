#pragma once
// Gradients as a training program would ask for them: of every floating-point input and parameter.

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

// Runs a method forward and backward. What comes back from outside is a fixed pattern, exact in
// every dtype. Parameters require gradients from then on.
Gradients gradients_of(const torch::jit::Module& module, const std::string& method,
                       const Inputs& inputs);

// The same work without a result, prepared: forward, and backward to what gradients_of() asks for.
std::function<void()> training_step(const torch::jit::Module& module, const std::string& method,
                                    const Inputs& inputs);

// By the rule of comparison.h, in the Euclidean norm; returns why the result is not right, or
// nothing. No gradient is as good as one of zeros.
std::string wrong_gradient(const Gradients& result, const Gradients& original,
                           const Gradients& reference, const Tolerance& tolerance = {});

}  // namespace twinkle::runtime
