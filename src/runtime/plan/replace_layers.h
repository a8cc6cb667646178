#pragma once
// Replaces the forwards of chosen instances, outer before inner ones.

#include "runtime/plan/holders.h"
#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// Instances that a pattern or an outer layer computes now become part of it.
void replace_layers(const Job& job, Plan& plan, KernelCode& code, const Holders& holders);

}  // namespace twinkle::runtime
