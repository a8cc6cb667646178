#pragma once
// Checks that a call gives a region's results: on the inputs that the region got when the model
// ran, on much smaller values (a wrong epsilon shows there), and on twice as many rows (a batch).

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

    // `recorded`: the inputs, by call; at least one.
    RegionProof(const Region& region, const std::vector<Values>& recorded);

    // Whether the region itself can run on the recorded inputs; if not, no other method may be
    // called.
    bool possible() const { return !cases_.empty(); }

    struct Outcome {
        // For each result of the region its index among the results of the call.
        std::vector<std::optional<std::size_t>> results;
        std::string problem;  // why the call is not right; empty: it is
        // The error over the allowed one; infinite if it cannot be computed.
        double excess = std::numeric_limits<double>::infinity();
    };
    // Compares by the rule of comparison.h. The graph takes the inputs of the region.
    Outcome examine(const std::shared_ptr<torch::jit::Graph>& call) const;

    // The call's results for random values of the recorded shapes, to tell apart calls that are all
    // right on the recorded ones; nothing if it fails.
    std::optional<Values> on_random_values(const std::shared_ptr<torch::jit::Graph>& call) const;
    // Whether these are the results of the region, or else of another call.
    bool right_on_random_values(const Values& given,
                                const std::vector<std::optional<std::size_t>>& results) const;

    // The inputs of the first recorded call, and the region's results for them.
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

// Whether every result that both calls give, in the order of `results`, is the same.
bool same_results(const RegionProof::Values& one,
                  const std::vector<std::optional<std::size_t>>& results,
                  const RegionProof::Values& other,
                  const std::vector<std::optional<std::size_t>>& other_results);

}  // namespace twinkle::runtime
