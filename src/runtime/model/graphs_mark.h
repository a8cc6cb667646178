#pragma once
// The mark for CUDA graphs: forward() asks an operator first, which replays a captured run where
// that is faster, and computes itself where there is none. It is code because load and save drop
// everything else, and because torch::jit::load alone then makes what replays.
//
//   replayed, result = ops.twinkle.replay("twinkle.graphs/1", graphs, self, (x, y))
//   if replayed: …  else: the original body

#include "runtime/model/model_file.h"

#include <torch/script.h>

#include <memory>
#include <vector>

namespace twinkle::runtime {

inline constexpr const char* graphs_mark_text = "twinkle.graphs/1";
inline constexpr const char* replay_operator = "twinkle::replay";

// `graphs`: the object that replays (replay/marked_model.h), to be a constant of the graph. Throws
// Error(malformed) for a model without forward().
void mark_for_graphs(torch::jit::Module& root, const c10::IValue& graphs);
// Gives every method its own body back. False: there was no mark.
bool remove_graphs_mark(const torch::jit::Module& root);

// A copy of forward() as it was before.
std::shared_ptr<torch::jit::Graph> unmarked_forward(const torch::jit::Module& root);

bool is_marked_for_graphs(const std::vector<CodeFile>& code);

}  // namespace twinkle::runtime
