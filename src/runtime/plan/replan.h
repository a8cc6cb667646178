#pragma once
// A plan changed by what was found out when it was applied, for another copy of the model.

#include "runtime/plan/plan.h"

#include <string>

namespace twinkle::runtime {

// The site that a report calls so; null: there is none.
Site* reported_site(Plan& plan, const std::string& name);

// The candidate that was chosen for the site is refused for this reason. Whether another one is
// chosen now; if not, the site keeps its original, and something that only yielded to it may take
// its place.
bool refuse_chosen(Plan& plan, Site& site, const std::string& because);

// This one of the site's candidates serves it.
void choose_candidate(Plan& plan, Site& site, const Choice& choice);
// Calls choose by the size of an input; one of the choices at least is no original.
void choose_by_size(Plan& plan, Site& site, const ChoiceBySize& choices);

// No candidate serves the site: the original is kept for this reason.
void keep_original(Plan& plan, Site& site, const std::string& because);

// The site keeps its original and ends in the report as `entry` has it.
void put_back(Plan& plan, Site& site, const SiteReport& entry);

// The same plan for the job's model, which is another copy of what it was made for, read from the
// same file.
Plan plan_for_copy(const Job& job, const Plan& plan);

}  // namespace twinkle::runtime
