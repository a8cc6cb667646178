#pragma once
// Records in a model the kernels and C++ functions that its replaced sites need.

#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// Warns of a C++ function of this program: the saved model works in this process only.
void mark_used_kernels(const Job& job, const Plan& plan, const KernelCode& code, Report& report);

}  // namespace twinkle::runtime
