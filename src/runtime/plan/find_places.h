#pragma once
// The places that compute what patterns describe, and what was chosen for them.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

void find_places(const Job& job, Plan& plan);

// The same in the model as it is now: instances that have got classes of their own have graphs of
// their own, and so places with other keys.
void find_places_again(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
