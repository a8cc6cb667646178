#pragma once
// One kernelize of one model: convert, plan, apply, mark.

#include "runtime/plan/job.h"

namespace twinkle::runtime {

// The model is kernelized in place, while nobody else changes models that share its code.
Report run(const Job& job);

// The report alone: in memory only, and the model is not fit for use afterwards.
Report examine(Job job);

// The last word on a model, once all that was to be replaced in it is: a warning where nothing was.
void report_nothing_replaced(Report& report, const Mapping& mapping);

}  // namespace twinkle::runtime
