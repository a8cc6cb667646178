#pragma once
// What is chosen for a site before its own kind has a say, and for calls of functions.

#include "runtime/plan/site.h"

namespace twinkle::runtime {

// Keeps a site that the options or the environment leave out, before any binding has a say.
// Whether it was one.
bool leave_out(const Job& job, Site& site);

// The candidate for a function, or why there is none.
void choose_function(const Job& job, Site& site, const MappedFunction& function);

}  // namespace twinkle::runtime
