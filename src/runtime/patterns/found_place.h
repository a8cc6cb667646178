#pragma once
// What is to be said of a place that computes a formula.

#include "runtime/patterns/matcher.h"

namespace twinkle::runtime {

// Whether a parameter of this type can be what is read there.
bool accepts(const FlatGraph& graph, const c10::Type& type, const FlatInput& given);

// `images`: for every value of the formula what it is in the graph.
FormulaMatch found_place(const FlatGraph& graph, const Formula& formula,
                         const std::vector<FlatInput>& images, std::vector<std::int32_t> nodes);

}  // namespace twinkle::runtime
