#pragma once
// The formula of each operator, written in PyTorch as the models write it.

#include <functional>

#include "pack_library.h"

namespace pack {

using Function = std::function<Tensors(const Tensors&)>;

// The kind of a tensor argument.
enum class Kind { values, row, absent };

struct Formula {
    std::string op;
    std::vector<Kind> kinds;
    std::vector<c10::IValue> numbers;
    // Computes in the dtypes of its inputs; exact for doubles.
    Function original;
    // The operator that computes the gradients from (grad of the first result, inputs), and which
    // inputs have gradients. Empty: none.
    std::string backward;
    bool even = false;     // the last size must be
    bool any_row = false;  // a row may have any dtype; else that of the values, or float32
    bool backward_takes_bias = true;

    Tensors inputs(const std::function<Tensor()>& values, int64_t n, at::ScalarType row) const;
    Tensors run(const Tensors& inputs) const { return call(op, inputs, numbers); }
};

// The activations: of one tensor, gating another, and over halves.
const std::vector<Formula>& elementwise_formulas();
// Normalizations with every combination of weights and orders.
const std::vector<Formula>& norm_formulas();

// Checks all results of the operator by the rule of `judge`, in this test
// case.
void check_right(const Formula& formula, const Tensors& inputs);
void check_gradients(const Formula& formula, const Tensors& inputs, const Tensor& grad);

}  // namespace pack
