#pragma once
// Places that compute with the same nodes: one of them alone can be replaced.

#include "runtime/plan/plan.h"

namespace twinkle::runtime {

// What comes first in the mapping takes what several would match, if it may be replaced; the others
// are outdone. Asked again when a place is put back.
void settle_overlaps(Plan& plan);

}  // namespace twinkle::runtime
