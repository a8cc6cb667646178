#pragma once
// Finds calls of bound functions that the code still holds as calls, and chooses for them.

#include "runtime/plan/plan.h"

#include <set>
#include <string>

namespace twinkle::runtime {

// Adds the names of all functions that the model calls to `called`.
void find_calls(const Job& job, Plan& plan, std::set<std::string>& called);

}  // namespace twinkle::runtime
