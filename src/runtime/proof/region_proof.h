#pragma once
// Whether a call gives what a region gives: on what went into the region when the model ran, the
// same much smaller (a wrong epsilon shows there), and twice as many of it (a batch).

#include "runtime/trace/region.h"
#include "runtime/verify/comparison.h"

#include <torch/script.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

class RegionProof {
public:
    using Values = std::vector<c10::IValue>;

    // `recorded`: what went in, by call; at least one.
    RegionProof(const Region& region, const std::vector<Values>& recorded);

    // Whether the region itself can be run on what was recorded; if not, nothing else is to be
    // asked.
    bool possible() const { return !cases_.empty(); }

    struct Outcome {
        // For each result of the region, which of those that the call gives it is.
        std::vector<std::optional<std::size_t>> results;
        std::string problem;  // why the call is not right; empty: it is
        // How many times as far off as it may be; infinite where that cannot be said.
        double excess = std::numeric_limits<double>::infinity();
    };
    // By the rule of comparison.h. The graph takes the inputs of the region.
    Outcome examine(const std::shared_ptr<torch::jit::Graph>& call) const;

    // What a call gives for random values of the recorded shapes, to tell calls apart that are all
    // right on the recorded ones; nothing where it fails.
    std::optional<Values> on_random_values(const std::shared_ptr<torch::jit::Graph>& call) const;
    // … and whether those are the results of the region, or of another call.
    bool right_on_random_values(const Values& given,
                                const std::vector<std::optional<std::size_t>>& results) const;

    // Inputs, and the results of the region for them, for the first recorded call.
    const Values& inputs() const { return cases_.front().inputs; }
    const Values& results() const { return cases_.front().results; }

private:
    struct Case {
        std::string what;
        Values inputs, results, reference;  // the last computed in double
        Tolerance tolerance{};
    };

    std::optional<Case> case_of(std::string what, Values inputs) const;
    Outcome examine(const Case& one, const Values& given) const;

    std::shared_ptr<torch::jit::Graph> graph_, in_double_;
    bool gives_list_;
    std::vector<Case> cases_;
    std::optional<Case> random_;
};

// Every result of a call in the order of `results`, as far as it gives them, is the other's.
bool same_results(const RegionProof::Values& one,
                  const std::vector<std::optional<std::size_t>>& results,
                  const RegionProof::Values& other,
                  const std::vector<std::optional<std::size_t>>& other_results);

}  // namespace twinkle::runtime
