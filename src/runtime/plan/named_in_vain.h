#pragma once
// Names in the options and the mapping that match nothing in the model.

#include "runtime/plan/plan.h"

#include <set>
#include <string>

namespace twinkle::runtime {

// Reports a name that matches nothing: a warning, or Error(refused) if the options are
// strict.
void report_nowhere(const Job& job, Plan& plan, std::string text);

// Reports functions of the mapping that are not in `called`.
void report_uncalled(const Job& job, Plan& plan, const std::set<std::string>& called);

// Warns of globs of `only` and `exclude` that match no site.
void warn_of_unmatched(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
