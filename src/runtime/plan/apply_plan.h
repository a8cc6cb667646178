#pragma once
// Does to a model what a plan says.

#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"

namespace twinkle::runtime {

// Every site of the plan then says what came of it. Throws Error(refused) for a site that is kept
// by a fallback that is not allowed; the model may be partly changed by then.
void apply_plan(const Job& job, Plan& plan, KernelCode& code, StandIns& stand_ins);

}  // namespace twinkle::runtime
