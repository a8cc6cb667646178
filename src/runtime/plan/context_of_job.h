#pragma once
// Where and how the model will run, as the options and the model say.

#include "runtime/plan/job.h"

namespace twinkle::runtime {

// Determines the job's context, and notes it in the report. Throws Error: malformed (an unknown
// mode), refused (a mapping for another system).
void determine_context(Job& job, Report& report);

}  // namespace twinkle::runtime
