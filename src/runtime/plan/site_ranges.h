#pragma once
// Replaced sites as ranges of LibTorch's profiler, under their names: by operators of LibTorch
// alone, so that a saved model needs nothing of twinkle for it. Code is shared by instances; names
// are attributes of each, which freezing makes constants.

#include <torch/script.h>

#include <set>
#include <string>

namespace twinkle::runtime {

// Sites are named as in a report: paths of instances, and calls. The model must be about to be
// saved: a copy of it in memory that shares its classes would lack the attributes.
void add_ranges(torch::jit::Module& root, const std::set<std::string>& sites);

}  // namespace twinkle::runtime
