#pragma once
// A model that computes in double precision what the original computes in its own dtype: the
// reference of every comparison.

#include <torch/csrc/jit/ir/ir.h>
#include <torch/script.h>

#include <memory>
#include <vector>

namespace twinkle::runtime {

// Rewrites every floating dtype constant in the graphs of the model (casts that scripting or
// tracing baked in) to float64, and floating tensor constants, too; gives products of groups code
// that takes float64, and masks of attention their queries' dtype. The weights stay as they are:
// convert the part that is run with hold_in_double().
void compute_in_double(torch::jit::Module& model);
// Several, each function that they share once.
void compute_in_double(const std::vector<torch::jit::Module>& models);
// A copy that computes so, with the code of what it calls: others call the same functions.
std::shared_ptr<torch::jit::Graph> copied_in_double(torch::jit::Graph& graph);

// Converts the floating-point weights only. Module::to(dtype) would also convert integers, which
// are used as indices.
void hold_in_double(torch::jit::Module& model);

}  // namespace twinkle::runtime
