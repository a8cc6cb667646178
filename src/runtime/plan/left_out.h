#pragma once
// Sites that the options exclude, before any binding is looked at.

#include "runtime/plan/site.h"

namespace twinkle::runtime {

// Keeps the site if the options or the environment leave it out, and returns whether they do. Comes
// before all bindings.
bool leave_out(const Job& job, Site& site);

}  // namespace twinkle::runtime
