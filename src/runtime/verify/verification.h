#pragma once
// Proves a kernelized model on real values, in a child process: each replaced site on the inputs
// that it really saw, then the whole model, both against a double-precision run of the original.

#include "runtime/model/inputs.h"
#include "runtime/verify/comparison.h"
#include "runtime/verify/sandbox.h"
#include "twinkle/report.h"

#include <torch/script.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::runtime {

struct Verdict {
    bool right = false;
    std::string because;  // why not, or what limits the verdict
    bool reached = true;  // the inputs led through the site at all
    bool ran = false;     // it gave a result for every call that was compared
    Comparison comparison;
    double before_us = 0;
    double after_us = 0;
};

struct VerificationContext {
    std::filesystem::path original;
    Inputs inputs;
    SandboxLimits limits;
    bool gradients = false;  // compare them too: the model is to be trained
    // Called in the parent as sites are taken up: how many are done, how many there are, which is
    // next.
    std::function<void(std::size_t done, std::size_t total, const std::string& site)> observer;
};

// A site during which the child died has the reason of its death; the others are taken up again in
// a new child. Throws Error(malformed) if the original itself cannot run on these inputs.
std::map<std::string, Verdict> verify_sites(const VerificationContext& context,
                                            const torch::jit::Module& kernelized,
                                            const std::vector<std::string>& sites);

Verdict verify_whole(const VerificationContext& context, const torch::jit::Module& kernelized);

// Fills a report entry from a verdict.
void enter(const Verdict& verdict, SiteReport& site);

}  // namespace twinkle::runtime
