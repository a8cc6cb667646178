#pragma once
// The original with a call for each site: what is a call is recorded and run alone.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// Makes calls of what these sites of the plan compute, in another copy of the model that the plan
// was made for, where they are none yet. A kind of site that is no call in the original has its
// line here.
void outline_sites(const Mapping& mapping, const Plan& plan, torch::jit::Module& model,
                   const std::vector<std::string>& sites);

}  // namespace twinkle::runtime
