#pragma once
// Conditions of a binding that no instance can meet: most often typing errors.

#include "runtime/plan/plan.h"

#include <string>
#include <vector>

namespace twinkle::runtime {

// One sentence for every pattern in `modules` that matches no instance of the binding's classes,
// and for every attribute or submodule in `when` and `when_submodule` that none of them has, with
// the nearest name that exists.
std::vector<std::string> doubtful_conditions(const Mapping& mapping, const Plan& plan);

}  // namespace twinkle::runtime
