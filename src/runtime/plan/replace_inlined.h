#pragma once
// Puts calls in the place of what a trace has inlined.

#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"

namespace twinkle::runtime {

void replace_inlined(const Job& job, Plan& plan, StandIns& stand_ins);

}  // namespace twinkle::runtime
