#pragma once
// Gives instances that a plan treats differently different classes.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// A site that the model treats as one with another is kept, and says so. Instances of the sites are
// the new objects afterwards, and places are found in the new graphs.
void separate(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
