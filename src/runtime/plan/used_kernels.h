#pragma once
// Notes in a model the kernels and the C++ functions that its replaced sites need.

#include "runtime/plan/kernel_code.h"
#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// A C++ function of this program is a warning: the saved model is for this process alone.
void mark_used_kernels(const Job& job, const Plan& plan, const KernelCode& code, Report& report);

}  // namespace twinkle::runtime
