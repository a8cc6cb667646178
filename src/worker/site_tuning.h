#pragma once
// Which candidate serves which calls of a site: each is measured beside the original in several
// sizes of the inputs, or was before, and the plan gets what is fastest in each.
//
// The original wins where no candidate is surely faster (tuning/choice_by_size.h), and of
// candidates that cannot be told apart the first. Sites whose originals have the same code, and
// that are called alike, share their measurements: layers of a model are not to differ by luck.

#include "runtime/plan/plan.h"
#include "twinkle/report.h"
#include "worker/measurements.h"
#include "worker/sized_site.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace twinkle::worker {

class SiteTuning {
public:
    explicit SiteTuning(CallFacts facts) : facts_(std::move(facts)) {}

    // The replaced sites of which no calls are known yet.
    std::vector<std::string> unknown(const Report& report) const;
    void add(const std::vector<std::string>& asked, const runtime::Survey& survey,
             runtime::Plan& plan);

    // Gives each site its next candidate that is to be measured or, where there is none, what has
    // turned out to be the fastest. Whether the plan is another one now.
    bool change(runtime::Plan& plan);

    // What is to be measured of the sites as they are, each kind of call once.
    std::map<std::string, runtime::SizeGroups> to_measure(const Report& report,
                                                          runtime::Plan& plan);
    // How often something remains to be measured, of all candidates.
    std::size_t remaining(runtime::Plan& plan) const;
    // Notes what was found of the sites' candidates, before the plan changes.
    void note(const std::map<std::string, runtime::Verdict>& verdicts, runtime::Plan& plan);

    // Says in the report what was measured of each site and what its calls get.
    void enter(Report& report, runtime::Plan& plan) const;

private:
    struct Decided {
        std::vector<tuning::SizePart> parts;
        std::vector<tuning::MeasuredSize> sizes;
    };

    const runtime::Choice* next(const SizedSite& sized, const runtime::Site& site) const;
    bool decide(runtime::Plan& plan, runtime::Site& site, const SizedSite& sized);
    std::string why_not(const SizedSite& sized, const Decided& decided,
                        std::size_t candidate) const;

    CallFacts facts_;
    std::optional<Measurements> known_;
    std::map<std::string, SizedSite> sites_;
    std::set<std::string> unreached_;
    // Original and candidate, once they were to be measured: not again, whatever came of it.
    std::set<std::pair<std::string, std::string>> tried_;
    std::map<std::string, Decided> decided_;
};

}  // namespace twinkle::worker
