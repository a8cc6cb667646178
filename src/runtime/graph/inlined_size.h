#pragma once
// How large code becomes when its calls are inlined: functions that call each other twice, thirty
// deep, are a small file and a graph that no memory holds.

#include <torch/script.h>

#include <cstddef>

namespace twinkle::runtime {

// The nodes of a method with all that it calls, counted up to `most`, which is also the answer for
// calls that are nested more deeply than LibTorch can inline.
std::size_t inlined_nodes(const torch::jit::Method& method, std::size_t most);

}  // namespace twinkle::runtime
