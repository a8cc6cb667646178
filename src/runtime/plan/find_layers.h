#pragma once
// The instances of bound classes, and the layers chosen for them.

#include "runtime/plan/plan.h"

#include <vector>

namespace twinkle::runtime {

void find_layers(const Job& job, const std::vector<Instance>& instances, Plan& plan);

}  // namespace twinkle::runtime
