#pragma once
// Finds the places that compute what patterns describe, and chooses for them.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

void find_places(const Job& job, Plan& plan);

// Finds them again in the model as it is now: instances that got a class of their own have graphs
// of their own, and so places with other keys.
void find_places_again(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
