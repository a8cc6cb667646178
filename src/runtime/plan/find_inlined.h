#pragma once
// The calls of bound functions that a trace has inlined: found by the stacks of its nodes, and
// proved on a run how what stands for them is to be called.

#include "runtime/plan/plan.h"

#include <set>
#include <string>

namespace twinkle::runtime {

class StandIns;

// Adds the names of the functions that it finds to `called`.
void find_inlined(const Job& job, StandIns& stand_ins, Plan& plan, std::set<std::string>& called);

}  // namespace twinkle::runtime
