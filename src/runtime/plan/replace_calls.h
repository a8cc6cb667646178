#pragma once
// Replaces calls of functions, callers before callees: a call inside a function that nothing calls
// any more is no site.

#include "runtime/plan/holders.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/stand_ins.h"

namespace twinkle::runtime {

void replace_calls(const Job& job, Plan& plan, StandIns& stand_ins, const Holders& holders);

}  // namespace twinkle::runtime
