#pragma once
// Sites that are alike: of the same class or formula, with the same outcome. A model repeats its
// layers, and a report of every one hides what matters.

#include <string>
#include <vector>

#include "base/json.h"

namespace twinkle::cli {

struct SiteGroup {
    std::vector<const base::Json*> sites;  // at least one, in the order of the report
    // All of them in the form of one site. "site" is a glob over their names; the error is the
    // worst of them, by its bound; calls and times are those of all together; "because" is what
    // their reasons share, or the reason of the worst.
    base::Json summary;
};

// Returns them in the order of their first sites. The report must outlive the groups.
std::vector<SiteGroup> group_sites(const base::Json& report);

// Sites that are alike in the form of one. At least one.
base::Json summary_of(const std::vector<const base::Json*>& sites);

// "layers.*.mlp", which matches all of these names.
std::string common_glob(const std::vector<std::string>& names);

}  // namespace twinkle::cli
