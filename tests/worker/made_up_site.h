#pragma once
// A site with candidates of a mapping that is made up, called with 4 and with 64 rows.

#include "base/temp_folder.h"
#include "runtime/plan/plan.h"
#include "worker/sized_site.h"

#include <string>
#include <vector>

namespace twinkle::test {

class MadeUpSite {
public:
    explicit MadeUpSite(const std::vector<std::string>& functions = {"fast", "faster"}) {
        pattern_.name = "double";
        for (const std::string& function : functions) {
            FunctionCandidate& candidate = pattern_.candidates.emplace_back();
            candidate.function = function;
            candidate.file = "my.py";
            candidate.source = "def " + function + "(x): return x + x";
        }
        runtime::Site site({"", "Model", torch::jit::Module("Model")},
                           runtime::reported("double", "pattern", "double"), runtime::PlaceSite());
        for (const FunctionCandidate& candidate : pattern_.candidates) {
            site.candidates.push_back(
                {runtime::Choice{runtime::PatternChoice{&pattern_, &candidate}}, ""});
        }
        site.choice = site.candidates.front().choice;
        plan.sites.push_back(std::move(site));
    }

    runtime::Site& site() { return plan.sites.front(); }
    runtime::Choice choice(std::size_t i) const {
        return runtime::Choice{runtime::PatternChoice{&pattern_, &pattern_.candidates.at(i)}};
    }

    static runtime::SurveyedSite calls() {
        runtime::SurveyedSite calls{"the original's code", {}};
        for (const std::int64_t rows : {4, 64}) {
            AbstractInput input{.dtype = "float32", .sizes = {rows, 8}, .layout = "dense"};
            calls.calls.push_back({{input}, {{rows * 8, 8}}, "", true});
        }
        return calls;
    }
    worker::SizedSite sized(const worker::CallFacts& facts = {.platform = "cpu"}) {
        return {site(), calls(), facts};
    }

    runtime::Plan plan;

private:
    MappedPattern pattern_;
};

// A verdict by size: what is wrong in it, and how fast the candidate is (0: not measured).
struct MadeUpSize {
    std::string problem;
    double original_us = 0;
    double candidate_us = 0;
};

inline runtime::Verdict made_up_verdict(const std::vector<MadeUpSize>& sizes) {
    runtime::Verdict verdict;
    for (const MadeUpSize& size : sizes) {
        verdict.right = verdict.right || size.problem.empty();
        runtime::SizeVerdict& one = verdict.by_size.emplace_back();
        one.compared = true;
        one.problem = size.problem;
        if (size.candidate_us > 0) {
            one.times = {std::vector<double>(20, size.original_us),
                         std::vector<double>(20, size.candidate_us)};
        }
    }
    return verdict;
}

inline worker::Measurements measurements_in(const TempFolder& folder) {
    return {tuning::Store(folder.path()), "cpu", 1};
}

}  // namespace twinkle::test
