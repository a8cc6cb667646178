#pragma once
// One kernelize of one model: convert, plan, apply, mark.

#include "runtime/plan/job.h"

namespace twinkle::runtime {

// Kernelizes the model in place. Nobody else may change models that share its code meanwhile.
Report run(const Job& job);

// Returns the report alone: works in memory only, and the model is not fit for use afterwards.
Report report_of_applying(Job job);

// Warns if nothing was replaced; called once everything that was to be replaced is.
void report_nothing_replaced(Report& report, const Mapping& mapping);

}  // namespace twinkle::runtime
