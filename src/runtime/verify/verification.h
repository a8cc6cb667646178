#pragma once
// Proves a kernelized model on real values, in a child process: each replaced site on the inputs
// that it got in a run, then the whole model, both against a double-precision run of the original.

#include "runtime/verify/comparison.h"
#include "runtime/verify/timing.h"
#include "runtime/verify/verification_context.h"
#include "twinkle/report.h"

#include <torch/script.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

// A replaced site in calls of about one size.
struct SizeVerdict {
    bool compared = false;
    std::string problem;  // why it is not right; empty: nothing is wrong
    Samples times;        // of the original and of the kernelized; empty: not measured
};

struct Verdict {
    bool right = false;
    std::string because;  // why not, or what limits the verdict
    bool reached = true;  // the inputs led through the site at all
    bool ran = false;     // it gave a result for every call that was compared
    Comparison comparison;
    std::size_t calls = 0;  // that were compared, and make up one run of what was measured
    Samples times;          // of the original and of the kernelized; empty: not measured
    // Where sizes are judged apart (VerificationContext::by_size), by bound; it is right if it is
    // right in any of them.
    std::vector<SizeVerdict> by_size{};
};

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

// Tells the parent that the child is alive, at most ten times a second.
std::function<void()> sign_of_life(const std::function<void(std::string_view line)>& send);

[[noreturn]] void inputs_do_not_fit(const VerificationContext& context, const std::string& why);

// Fills a report entry from a verdict.
void enter(const Verdict& verdict, SiteReport& site);

}  // namespace twinkle::runtime
