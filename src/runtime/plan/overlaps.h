#pragma once
// Places that share nodes: only one of them can be replaced.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// Gives shared nodes to the place whose pattern comes first in the mapping, if it may be replaced;
// the others are outdone. Called again when a place is put back.
void settle_overlaps(Plan& plan);

}  // namespace twinkle::runtime
