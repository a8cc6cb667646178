#pragma once
// What the options and the mapping name that is not in the model.

#include "runtime/plan/plan.h"

#include <set>
#include <string>

namespace twinkle::runtime {

// Something that was asked for by name is nowhere: a warning, and Error(refused) where the options
// are strict.
void report_nowhere(const Job& job, Plan& plan, std::string text);

// Functions of the mapping that are not among those called.
void report_uncalled(const Job& job, Plan& plan, const std::set<std::string>& called);

// Globs of `only` and `exclude` that match no site.
void warn_of_unmatched(const Job& job, Plan& plan);

}  // namespace twinkle::runtime
