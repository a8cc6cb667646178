#pragma once
// Takes sites out of a plan that were replaced and are not right.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// The site keeps its original and is reported as in `entry`. Sites that it would have absorbed may
// then be replaced by themselves.
void put_back(Plan& plan, const SiteReport& entry);

// The same plan for the job's model, another copy of the model that it was made for, read from the
// same file.
Plan plan_for_copy(const Job& job, const Plan& plan);

}  // namespace twinkle::runtime
