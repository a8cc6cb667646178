#pragma once
// A method that has run once keeps what it was optimized to, with everything that it calls inlined:
// an edit of its graph, or of a graph that it calls, would do nothing, without an error.

#include <torch/script.h>

namespace twinkle::runtime {

// Makes every method and hook of the model, and every function that they call, run its graph as it
// is now, if it has run before or not. Not while the model runs.
void discard_past_runs(const torch::jit::Module& root);

}  // namespace twinkle::runtime
