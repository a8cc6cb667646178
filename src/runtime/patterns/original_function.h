#pragma once
// What a model itself computes at the place of a pattern, as a function.

#include "runtime/patterns/pattern_sites.h"

#include <torch/script.h>

#include <tl/expected.hpp>

#include <string>

namespace twinkle::runtime {

// The function of this name for a site: what it computes, by the model's own operators, of the
// parameters of the formula.
tl::expected<torch::jit::Function*, std::string> original_of(const FlatGraph& graph,
                                                             const PatternSite& site,
                                                             torch::jit::CompilationUnit& unit,
                                                             const c10::QualifiedName& name);

}  // namespace twinkle::runtime
