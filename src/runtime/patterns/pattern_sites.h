#pragma once
// Which methods of a model compute the formulas of a mapping, and what the places are called.

#include "runtime/graph/sites.h"
#include "runtime/patterns/matcher.h"
#include "twinkle/mapping.h"

#include <memory>
#include <string>
#include <vector>

namespace twinkle::runtime {

// The formulas of one pattern, compiled.
struct PatternRule {
    const MappedPattern* pattern = nullptr;
    std::vector<std::shared_ptr<const Formula>> formulas;
    std::vector<std::string> problems;  // of those that could not be compiled
};

std::vector<PatternRule> compile_patterns(const Mapping& mapping);

// A place in a method of an instance: the lowest method that holds all of it and that no place
// opens (pattern_homes.h). What it calls on the way becomes part of that method.
struct PatternSite {
    std::string site;  // "layers.0.forward:twinkle_patterns.add_rms_norm", with "#2" for the next
    const PatternRule* rule = nullptr;
    const Formula* formula = nullptr;
    Instance instance;
    torch::jit::Function* method = nullptr;
    FormulaMatch match;                 // where the method is called first
    std::vector<std::int32_t> claimed;  // flat nodes, wherever it is called
    std::int32_t frame = 0;             // of the method in `match`
    std::size_t number = 1;             // among those of its pattern in the method
    std::string key;                 // equal for the same place in instances that share their code
    std::vector<std::string> taken;  // paths of modules on the way that do nothing else

    // What is computed there, with the constants: equal for sites that one function can serve.
    std::string shape() const;
};

struct PatternSearch {
    FlatGraph graph;
    std::vector<PatternSite> sites;  // by rule, then in the order of the model
    std::vector<std::string> warnings;
};

// `may_train`: the model is for training. Else, and if no part of it is in training now, what its
// modules do in training is no part of what it computes.
PatternSearch find_patterns(const torch::jit::Module& model, const Mapping& mapping,
                            const std::vector<PatternRule>& rules, bool may_train);

// "twinkle_patterns.add_rms_norm": what a call stands for that has taken a pattern's place.
std::string pattern_function_name(const std::string& pattern);

}  // namespace twinkle::runtime
