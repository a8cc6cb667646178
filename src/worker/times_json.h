#pragma once
// What was measured, as reports say it.

#include "base/json.h"
#include "runtime/verify/verdict.h"

#include <map>
#include <string>
#include <vector>

namespace twinkle::worker {

// {"median", "lower_quartile", "upper_quartile"}; null: not measured.
base::Json times_json(const std::vector<double>& us);
// The same of the ratio, and {"difference"}; null: not measured.
base::Json speedup_json(const std::vector<double>& contestant, const std::vector<double>& other);

// Adds to a site of a report how many calls of it were measured, and their times.
void add_times(base::Json& site, const std::map<std::string, runtime::Verdict>& verdicts);

}  // namespace twinkle::worker
