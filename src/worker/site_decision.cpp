#include "worker/site_decision.h"

#include "base/text.h"
#include "runtime/plan/replan.h"
#include "worker/tuning_report.h"

#include <optional>

namespace twinkle::worker {

using runtime::Choice;
using runtime::Site;

namespace {

constexpr const char* no_time = "not measured: the time was up";

}  // namespace

SiteDecision::SiteDecision(const Site& site, const SizedSite& sized, const Findings& found)
    : sized_(sized),
      found_(found),
      sizes_(sized.measured(found.known(), site)),
      parts_(tuning::choose_by_size(sizes_)) {}

std::string SiteDecision::why_not(std::size_t candidate) const {
    const std::string problem = found_.problem_of(sized_, sized_.candidates()[candidate - 1]);
    const std::string speed = problem.empty() ? speed_text(sizes_, candidate) : problem;
    return speed.empty() ? no_time : speed;
}

bool SiteDecision::is_unmeasured() const {
    for (std::size_t i = 1; i <= sized_.candidates().size(); ++i) {
        if (why_not(i) != no_time) {
            return false;
        }
    }
    return true;
}

std::vector<std::string> SiteDecision::refuse_others(Site& site) const {
    std::set<std::size_t> chosen;
    for (const tuning::SizePart& part : parts_) {
        chosen.insert(part.candidate);
    }
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < sized_.candidates().size(); ++i) {
        const Choice& choice = sized_.candidates()[i];
        if (!chosen.contains(i + 1) && site.serves(choice)) {
            const std::string why = why_not(i + 1);
            const bool slow = why == speed_text(sizes_, i + 1);
            reasons.push_back(choice.describe() + (slow ? " is " : ": ") + why);
            site.candidate(choice)->refused = why;
        }
    }
    return reasons;
}

bool SiteDecision::apply(runtime::Plan& plan, Site& site) const {
    const std::optional<Choice> before = site.choice;
    const auto reasons = refuse_others(site);
    if (parts_.size() > 1) {
        runtime::choose_by_size(plan, site, sized_.choice_of(parts_));
        return true;
    }
    if (parts_.front().candidate == 0 && is_unmeasured()) {
        runtime::keep_original(plan, site,
                               "no kernel was measured here: the time was up, a larger --budget "
                               "has more");
    } else if (parts_.front().candidate == 0) {
        runtime::keep_original(plan, site,
                               "no kernel is faster here: " + base::join(reasons, ", "));
    } else {
        runtime::choose_candidate(plan, site, sized_.candidates()[parts_.front().candidate - 1]);
    }
    return site.choice != before;
}

void SiteDecision::enter(SiteReport& entry, const Site& site,
                         std::set<const tuning::Entry*>& told) const {
    entry.measured = measured_report(sizes_, sized_, found_.known(), told);
    if (site.choice && entry.status != SiteStatus::replaced) {
        return;  // what was chosen could not take its place, as the entry says
    }
    entry.candidates = runtime::report_of(site).candidates;
    if (site.choice) {
        entry.by_size =
            site.by_size ? parts_report(parts_, sized_) : std::vector<SizeChoiceReport>();
        entry.because += because_of(parts_, sizes_, sized_);
    }
}

}  // namespace twinkle::worker
