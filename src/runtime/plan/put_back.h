#pragma once
// A plan without sites that were replaced and are not right.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// The site keeps its original and ends in the report as `entry` has it. What it would have taken in
// may be replaced by itself then.
void put_back(Plan& plan, const SiteReport& entry);

// The same plan for the job's model, which is another copy of what it was made for, read from the
// same file.
Plan plan_for_copy(const Job& job, const Plan& plan);

}  // namespace twinkle::runtime
