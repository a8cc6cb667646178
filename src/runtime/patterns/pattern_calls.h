#pragma once
// Makes a call of what a method computes at the places of patterns.

#include "runtime/patterns/pattern_sites.h"

#include <torch/script.h>

#include <tl/expected.hpp>

#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct PatternCall {
    const PatternSite* site = nullptr;
    torch::jit::Function* function = nullptr;  // with the formula's parameters and results
};

// Edits the methods of the sites; each place is there once. What each call of another function on
// the way to a site does becomes part of the method. By site, why a call could not be put there.
std::map<const PatternSite*, std::string> put_calls(const FlatGraph& graph,
                                                    const std::vector<PatternCall>& calls);

// "twinkle_patterns.add_rms_norm" behind a prefix, and "twinkle_patterns._2.add_rms_norm" for the
// next one in a method.
c10::QualifiedName numbered(const std::string& prefix, const PatternSite& site);

// In a model that is verified, lets these sites be calls of what they compute.
void outline_patterns(const torch::jit::Module& model, const Mapping& mapping,
                      const std::vector<PatternRule>& rules, bool may_train,
                      const std::vector<std::string>& sites);

}  // namespace twinkle::runtime
