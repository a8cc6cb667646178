#pragma once
// What calls a model's sites get, without their data: what the store of measurements is asked for.

#include "runtime/verify/verification.h"
#include "twinkle/invocation.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct SurveyedCall {
    std::vector<AbstractInput> inputs;
    struct Extent {
        std::int64_t elements = -1;  // -1: no tensor
        std::int64_t width = 1;      // its last dimension
    };
    std::vector<Extent> extents;  // of the inputs, by position
    std::string size;             // of the model's inputs; empty: as given
    bool tuned = false;           // candidates are measured in that size
};

struct SurveyedSite {
    std::string content;  // hash of the original's code, and of the shapes and settings it has
    std::vector<SurveyedCall> calls;
};

struct Survey {
    std::map<std::string, SurveyedSite> sites;
    std::vector<SizeVariant> sizes;  // those of the context that the original accepts
    int threads = 0;                 // that LibTorch computes with where sites are measured
    bool cold = false;  // sites are measured with weights that come from memory (contest_times.h)
};

// Runs the original in a child, on the inputs and in the context's other sizes. Throws
// Error(malformed) if it cannot run on these inputs.
Survey survey_sites(const VerificationContext& context, const torch::jit::Module& kernelized,
                    const std::vector<std::string>& sites);

}  // namespace twinkle::runtime
