#pragma once
// The original with a call for each site: only calls can be recorded and run alone.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// Turns what these sites of the plan compute into calls, in another copy of the model that
// the plan was made for. A new kind of site that is no call in the original gets its line
// here.
void outline_sites(const Mapping& mapping, const Plan& plan, torch::jit::Module& model,
                   const std::vector<std::string>& sites);

}  // namespace twinkle::runtime
