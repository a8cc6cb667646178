#pragma once
// How long calls of a site take: its original beside one candidate or several.

#include "runtime/verify/contestant.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <functional>
#include <stdexcept>
#include <vector>

namespace twinkle::runtime {

// A candidate cannot be captured where its original can (VerificationContext::capture).
struct NotCaptured : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct TimedContest {
    torch::jit::Module original;
    std::vector<torch::jit::Module> candidates;
    Calls calls;  // of all of them
};

// Whether each sample finds the weights of its site in memory, in no cache: as a call in the whole
// model does, whose weights these are. Not in training, where a backward pass follows while they
// are in the caches.
bool come_from_memory(const ModelWeights& weights, const VerificationContext& context);

// Samples of the original and then of each candidate, by the context's sampling; its budget is for
// each candidate beside the original. `weights` are those of the model in which the site lies.
// Candidates get the original's parameters: a single one those that are alike, several all that
// fit, as they are of other layers. `alive` is called between samples. Throws what a contestant
// throws, and NotCaptured.
Samples contest_times(const TimedContest& contest, const VerificationContext& context,
                      const ModelWeights& weights, const std::function<void()>& alive);

}  // namespace twinkle::runtime
