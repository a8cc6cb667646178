#pragma once
// The sites whose candidates are measured: those of which a survey has found the calls.

#include "runtime/plan/plan.h"
#include "runtime/tuning/site_survey.h"
#include "twinkle/report.h"
#include "worker/measurements.h"
#include "worker/sized_site.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace twinkle::worker {

class TunedSites {
public:
    explicit TunedSites(CallFacts facts) : facts_(std::move(facts)) {}

    const CallFacts& facts() const { return facts_; }

    // The replaced sites that no survey was asked for yet.
    std::vector<std::string> unknown(const Report& report) const;
    void add(const std::vector<std::string>& asked, const runtime::Survey& survey,
             runtime::Plan& plan, Measurements& known);

    // Null: its calls are not known, or there are none.
    SizedSite* find(const std::string& site);
    const SizedSite* find(const std::string& site) const;

    void look_up(Measurements& known) const;

private:
    CallFacts facts_;
    std::map<std::string, SizedSite> sites_;
    std::set<std::string> unreached_;  // keep their first candidate
};

}  // namespace twinkle::worker
