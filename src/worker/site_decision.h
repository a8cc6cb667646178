#pragma once
// What the calls of a site get by what was measured, in the plan and in the report.

#include "runtime/plan/plan.h"
#include "twinkle/report.h"
#include "worker/findings.h"
#include "worker/sized_site.h"

#include <set>
#include <string>
#include <vector>

namespace twinkle::worker {

class SiteDecision {
public:
    SiteDecision(const runtime::Site& site, const SizedSite& sized, const Findings& found);

    // Chooses in the plan, with a reason for each candidate that is not chosen. Whether the site
    // gets something else now.
    bool apply(runtime::Plan& plan, runtime::Site& site) const;

    // Adds what it tells to `told`.
    void enter(SiteReport& entry, const runtime::Site& site,
               std::set<const tuning::Entry*>& told) const;

private:
    std::string why_not(std::size_t candidate) const;
    // Whether nothing is known of any candidate: the time was up before.
    bool is_unmeasured() const;
    // Refuses the candidates that serve the site and are not chosen. Returns the reasons.
    std::vector<std::string> refuse_others(runtime::Site& site) const;

    const SizedSite& sized_;
    const Findings& found_;
    std::vector<tuning::MeasuredSize> sizes_;
    std::vector<tuning::SizePart> parts_;
};

}  // namespace twinkle::worker
