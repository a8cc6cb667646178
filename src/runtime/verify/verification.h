#pragma once
// Proves a kernelized model on real values, in a child process: each replaced site on the inputs
// that it got in a run, then the whole model, both against a double-precision run of the original.

#include "runtime/verify/verdict.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct SitesVerified {
    std::map<std::string, Verdict> verdicts;
    std::vector<SizeVariant> sizes;  // those of the context that the original accepts
};

// A site during which the child died gets the reason of its death; a new child goes on with the
// others. Throws Error(malformed) if the original itself cannot run on these inputs.
SitesVerified verify_sites(const VerificationContext& context, const torch::jit::Module& kernelized,
                           const std::vector<std::string>& sites);

// Compares in every size of the context that the original accepts.
Verdict verify_whole(const VerificationContext& context, const torch::jit::Module& kernelized);

// Compares the converted original, before any kernel, with the original in which every result is
// rounded to that dtype. The context must have one.
Verdict verify_conversion(const VerificationContext& context);

[[noreturn]] void inputs_do_not_fit(const VerificationContext& context, const std::string& why);

}  // namespace twinkle::runtime
