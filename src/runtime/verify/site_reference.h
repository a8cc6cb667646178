#pragma once
// What sites are compared with: the original in double precision.

#include "runtime/verify/call_recorder.h"
#include "runtime/verify/verification_context.h"

#include <torch/script.h>

#include <map>
#include <string>
#include <vector>

namespace twinkle::runtime {

// Where nothing is compared, the original as it is stands for it.
class SiteReference {
public:
    SiteReference(const VerificationContext& context, const std::vector<std::string>& sites,
                  const torch::jit::Module& kernelized, const torch::jit::Module& original);

    torch::jit::Module of(const std::string& site) const;

private:
    void rewrite(const InlinedSites& sites);

    bool compares_;
    torch::jit::Module model_;
    std::map<std::string, torch::jit::Module> inlined_;
};

}  // namespace twinkle::runtime
