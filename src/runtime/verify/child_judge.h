#pragma once
// The child's half of verification: runs the models, and sends what it finds to its parent, a JSON
// line for each step.

#include "runtime/trial/sandbox.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <functional>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Judges sites until one breaks the GPU. Sends {"fatal"}, or {"trying"} and {"sizes"}
// (sized_calls.h) and, for each site, {"begin"}, {"size"} and {"verdict"}; then times
// (side_by_side.h).
void judge_sites(const VerificationContext& context, const torch::jit::Module& kernelized,
                 const std::vector<std::string>& names, const Send& send);

// Judges the whole model: {"begin"}, {"size"} and {"verdict"} of a site without a name.
void judge_whole(const VerificationContext& context, const torch::jit::Module& kernelized,
                 const Send& send);

// Judges the converted original, before any kernel, in the same way.
void judge_conversion(const VerificationContext& context, const Send& send);

// Tells the parent that the child is alive, at most ten times a second.
std::function<void()> sign_of_life(const Send& send);

}  // namespace twinkle::runtime
