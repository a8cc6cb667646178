#pragma once
// Gives a class of their own to instances that a plan treats differently.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// Keeps a site that the model does not distinguish from another, with that reason. Afterwards the
// sites refer to the new objects, and places are found in the new graphs.
void separate(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
