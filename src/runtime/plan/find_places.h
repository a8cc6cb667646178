#pragma once
// The places that compute what patterns describe, and what was chosen for them.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

void find_places(const Job& job, Plan& plan);

// The same in the model as it is now: what has got a class of its own has graphs of its own, and so
// places with other keys.
void find_places_again(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
