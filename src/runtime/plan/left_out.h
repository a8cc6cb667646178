#pragma once
// What the options say of a site before any binding has a say.

#include "runtime/plan/site.h"

namespace twinkle::runtime {

// Keeps a site that the options or the environment leave out, before any binding has a say.
// Whether it was one.
bool leave_out(const Job& job, Site& site);

}  // namespace twinkle::runtime
