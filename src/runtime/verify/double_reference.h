#pragma once
// A model that computes in double precision what the original computes in its own: the reference of
// every comparison.

#include <torch/csrc/jit/ir/ir.h>
#include <torch/script.h>

namespace twinkle::runtime {

// Rewrites every floating dtype constant in the graphs of the model (casts that scripting or
// tracing baked in) to float64, and floating tensor constants with them. The weights stay as they
// are: convert the part that is run.
void compute_in_double(torch::jit::Module& model);
void compute_in_double(torch::jit::Graph& graph);

// Converts the floating-point weights; Module::to(dtype) would convert integers, too, which serve
// as indices.
void hold_in_double(torch::jit::Module& model);

}  // namespace twinkle::runtime
