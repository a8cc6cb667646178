#pragma once
// A kernel build as an object in a model. LibTorch reads the constants of a model before its code.
// So, in a process with libtwinkle, reading this one loads the kernel before its operators are
// looked up: torch::jit::load and Python's torch.jit.load need not know of it.

#include <torch/script.h>

#include <string>

namespace twinkle::runtime {

// The object for a marker (marker.h), to be a constant of a graph.
c10::IValue needed_kernel(const std::string& marker);

}  // namespace twinkle::runtime
