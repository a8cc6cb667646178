#pragma once
// Tries whether the layers and functions of a kernel's package compile: each for types taken from
// its source, against operators that are declared by their schemas. Nothing of the kernel is loaded
// or run.

#include "kernel/layers.h"
#include "twinkle/mapping.h"

#include <string>
#include <string_view>
#include <vector>

namespace twinkle::runtime {

struct TriedPackage {
    std::string op_namespace;
    std::string variant;
    kernel::PackageSources sources;
    std::vector<MappedOperator> operators;
};

enum class TrialOutcome {
    compiled,
    refused,  // for every type: something in it has no counterpart
    unknown,  // for these types, some of which are guessed, or for want of an operator's schema
};
std::string_view outcome_name(TrialOutcome outcome);  // "compiled", …

struct SourceTrial {
    std::string name;
    TrialOutcome outcome = TrialOutcome::unknown;
    std::string types;  // that it was compiled for: "(x: Tensor, eps: float)"
    std::string why;    // for the others: "layers.py:12: …"
};

struct SourceTrials {
    std::vector<SourceTrial> layers;
    std::vector<SourceTrial> functions;
};

// Tries those whose source alone gives no reason against them. Declares the operators for the life
// of the process.
SourceTrials try_sources(const TriedPackage& package);

}  // namespace twinkle::runtime
