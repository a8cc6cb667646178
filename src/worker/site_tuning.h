#pragma once
// Which candidate serves which calls of a site: each is measured beside the original in several
// sizes of the inputs, or was before, and the plan gets what is fastest in each.
//
// The original wins where no candidate is surely faster (tuning/choice_by_size.h), and of
// candidates that cannot be told apart the first. Sites whose originals have the same code, and
// that are called alike, share their measurements: layers of a model are not to differ by luck.

#include "runtime/plan/plan.h"
#include "twinkle/report.h"
#include "worker/configurations.h"
#include "worker/findings.h"
#include "worker/measuring_turns.h"
#include "worker/site_decision.h"
#include "worker/tuned_sites.h"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace twinkle::worker {

class SiteTuning {
public:
    // `longest`: that this run may take to measure.
    SiteTuning(CallFacts facts, std::chrono::seconds longest)
        : sites_(std::move(facts)), turns_(longest), configurations_(sites_.facts().mode) {}

    // The replaced sites of which no calls are known yet.
    std::vector<std::string> unknown(const Report& report) const { return sites_.unknown(report); }
    void add(const std::vector<std::string>& asked, const runtime::Survey& survey,
             runtime::Plan& plan);

    // Adds the configurations of the candidates that sites have now, as the builds of their kernels
    // declare them. Whether there was a candidate of which that was not known.
    bool configure(const torch::jit::Module& model, const Report& report, runtime::Plan& plan);

    // Gives each site its next candidate that is to be measured or, where there is none, what has
    // turned out to be the fastest. Sites that are called alike take different candidates, so that
    // one run of the model measures many. Whether the plan is another one now.
    bool change(runtime::Plan& plan);

    // Gives sites that are replaced a further candidate that is to be measured, for another copy of
    // the model. Decides nothing. Whether there was any.
    bool offer(const Report& report, runtime::Plan& plan) const;

    // Whether another run measures what some site needs; the sites stay undecided.
    bool waits(const runtime::Plan& plan) const;
    // Sites that are called alike take the same candidates from now on: what one could not take may
    // fit another. Whether that was not so before.
    bool try_alike();
    // Looks again for what the others have measured.
    void look_again();
    // No longer: what they have not measured is not known.
    void stop_waiting() { waiting_ = false; }
    // Other runs may measure what this one was to.
    void release();

    // What is to be measured of the sites as they are, each kind of call once.
    std::map<std::string, runtime::SizeGroups> to_measure(const Report& report,
                                                          runtime::Plan& plan);
    // Records that a site's candidate is measured in these sizes, so that it is not measured there
    // again, whatever the result.
    void hand_over(const std::string& site, const runtime::Choice& choice,
                   const std::set<std::size_t>& timed);
    // How often something remains to be measured, of all candidates.
    std::size_t remaining(const runtime::Plan& plan) const;
    // Notes what was found of a site's candidate.
    void note(const std::string& site, const runtime::Choice& choice,
              const runtime::Verdict& verdict);

    // A site none of whose candidates is right in any size, by what this run has found or the store
    // knows, and the verdict on the first of these.
    std::optional<std::pair<std::string, runtime::Verdict>> all_wrong(
        const runtime::Plan& plan) const;

    // Says in the report what was measured of each site and what its calls get.
    void enter(Report& report, runtime::Plan& plan) const;

private:
    const SizedSite* undecided(const runtime::Site& site) const;
    // The candidate that a site takes now, none of whose pairs another site has taken; adds them.
    const runtime::Choice* next(const SizedSite& sized, const runtime::Site& site,
                                Pairs& taken) const;
    // Whether something is still to be measured, by this site or another.
    bool is_open(const SizedSite& sized, const runtime::Site& site) const;

    TunedSites sites_;
    std::optional<Findings> found_;  // from the first survey on
    MeasuringTurns turns_;
    Configurations configurations_;
    std::map<std::string, SiteDecision> decided_;
    bool waiting_ = true;
    bool differ_ = true;  // sites that are called alike try different candidates
};

}  // namespace twinkle::worker
