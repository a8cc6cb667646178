#pragma once
// Finds the calls of bound functions that a trace has inlined, by the stacks of its nodes, and
// proves on a run how to call the replacement.

#include "runtime/plan/plan.h"

#include <set>
#include <string>

namespace twinkle::runtime {

class StandIns;

// Adds the names of the functions that it finds to `called`.
void find_inlined(const Job& job, StandIns& stand_ins, Plan& plan, std::set<std::string>& called);

}  // namespace twinkle::runtime
