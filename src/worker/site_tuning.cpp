#include "worker/site_tuning.h"

#include "runtime/plan/replan.h"

#include <algorithm>
#include <utility>

namespace twinkle::worker {

using runtime::Choice;
using runtime::Site;

namespace {

bool may_change(const Site& site) {
    return site.is_reported() && !site.put_back && !site.left_out;
}

}  // namespace

void SiteTuning::add(const std::vector<std::string>& asked, const runtime::Survey& survey,
                     runtime::Plan& plan) {
    if (!found_) {
        found_.emplace(
            Measurements(tuning::Store(tuning::Store::usual_place(target::this_machine())),
                         sites_.facts().platform, survey.threads));
    }
    sites_.add(asked, survey, plan, found_->known());
}

const Choice* SiteTuning::next(const SizedSite& sized, const Site& site, Pairs& taken) const {
    for (const Choice& choice : sized.candidates()) {
        if (site.serves(choice) && (!configurations_.are_known(site, choice) ||
                                    turns_.claim(sized, choice, found_->known(), taken))) {
            return &choice;
        }
    }
    return nullptr;
}

bool SiteTuning::is_open(const SizedSite& sized, const Site& site) const {
    return std::any_of(
        sized.candidates().begin(), sized.candidates().end(), [&](const Choice& choice) {
            return site.serves(choice) && !turns_.untried(sized, choice, found_->known()).empty();
        });
}

bool SiteTuning::configure(const torch::jit::Module& model, const Report& report,
                           runtime::Plan& plan) {
    bool any = false;
    for (const SiteReport& entry : report.sites) {
        Site* site = runtime::reported_site(plan, entry.site);
        SizedSite* sized = sites_.find(entry.site);
        if (site == nullptr || sized == nullptr || !site->choice || site->by_size ||
            configurations_.are_known(*site, *site->choice)) {
            continue;
        }
        any = true;
        entry.status == SiteStatus::replaced
            ? configurations_.add(model, *site, *sized, found_->known().threads())
            : configurations_.add_none(*site);
    }
    return any;
}

// Null: it is decided or may not change, or its calls are not known.
const SizedSite* SiteTuning::undecided(const Site& site) const {
    const std::string& name = site.report.site;
    return may_change(site) && !decided_.contains(name) ? sites_.find(name) : nullptr;
}

bool SiteTuning::waits(const runtime::Plan& plan) const {
    return waiting_ && std::any_of(plan.sites.begin(), plan.sites.end(), [&](const Site& site) {
               const SizedSite* sized = undecided(site);
               return sized != nullptr && is_open(*sized, site);
           });
}

bool SiteTuning::try_alike() {
    return std::exchange(differ_, false);
}

void SiteTuning::look_again() {
    turns_.look_again();
    found_->known().look_again();
    sites_.look_up(found_->known());
}

void SiteTuning::release() {
    if (found_) {
        found_->known().release();
    }
}

bool SiteTuning::change(runtime::Plan& plan) {
    bool changed = false;
    Pairs taken;
    for (Site& site : plan.sites) {
        const SizedSite* sized = undecided(site);
        if (sized == nullptr) {
            continue;
        }
        if (!differ_) {
            taken.clear();
        }
        const Choice* wanted = next(*sized, site, taken);
        if (wanted == nullptr && (differ_ || waiting_) && is_open(*sized, site)) {
            continue;
        }
        if (wanted == nullptr) {
            const SiteDecision decision(site, *sized, *found_);
            changed = decision.apply(plan, site) || changed;
            decided_.emplace(site.report.site, decision);
        } else if (site.choice != *wanted) {
            runtime::choose_candidate(plan, site, Choice(*wanted));
            changed = true;
        }
    }
    return changed;
}

bool SiteTuning::offer(const Report& report, runtime::Plan& plan) const {
    bool any = false;
    Pairs taken;
    for (const SiteReport& entry : report.sites) {
        Site* site = runtime::reported_site(plan, entry.site);
        const SizedSite* sized = site != nullptr ? undecided(*site) : nullptr;
        if (!differ_ || entry.status != SiteStatus::replaced || sized == nullptr) {
            continue;
        }
        const Choice* wanted = next(*sized, *site, taken);
        if (wanted != nullptr && configurations_.are_known(*site, *wanted)) {
            runtime::choose_candidate(plan, *site, Choice(*wanted));
            any = true;
        }
    }
    return any;
}

std::optional<std::pair<std::string, runtime::Verdict>> SiteTuning::all_wrong(
    const runtime::Plan& plan) const {
    for (const Site& site : plan.sites) {
        const SizedSite* sized = undecided(site);
        if (const auto verdict =
                sized != nullptr ? found_->all_wrong(site, *sized) : std::nullopt) {
            return std::pair(site.report.site, *verdict);
        }
    }
    return std::nullopt;
}

std::map<std::string, runtime::SizeGroups> SiteTuning::to_measure(const Report& report,
                                                                  runtime::Plan& plan) {
    std::map<std::string, runtime::SizeGroups> groups;
    std::string first;  // kind of calls: of one, all candidates are measured at least once
    Pairs taken;
    for (const SiteReport& entry : report.sites) {
        const Site* site = runtime::reported_site(plan, entry.site);
        const SizedSite* sized = site != nullptr ? undecided(*site) : nullptr;
        if (entry.status != SiteStatus::replaced || sized == nullptr || !site->choice) {
            continue;
        }
        auto timed = turns_.take(*sized, *site->choice, found_->known(), taken);
        if (!timed.empty()) {
            const std::string kind = sized->sizes().front().invocation.hash();
            first = first.empty() ? kind : first;
            auto& added = groups[entry.site] = sized->groups(std::move(timed));
            added.always = kind == first;
        }
    }
    return groups;
}

void SiteTuning::hand_over(const std::string& site, const Choice& choice,
                           const std::set<std::size_t>& timed) {
    turns_.hand_over(*sites_.find(site), choice, timed);
}

std::size_t SiteTuning::remaining(const runtime::Plan& plan) const {
    Pairs all;
    for (const Site& site : plan.sites) {
        const SizedSite* sized = undecided(site);
        if (sized == nullptr) {
            continue;
        }
        for (const Choice& choice : sized->candidates()) {
            for (const std::size_t size : turns_.untried(*sized, choice, found_->known())) {
                all.insert(sized->pair(size, choice));
            }
        }
    }
    return all.size();
}

void SiteTuning::note(const std::string& site, const Choice& choice,
                      const runtime::Verdict& verdict) {
    if (const SizedSite* sized = sites_.find(site)) {
        found_->note(*sized, choice, verdict);
    }
}

void SiteTuning::enter(Report& report, runtime::Plan& plan) const {
    std::set<const tuning::Entry*> told;
    for (SiteReport& entry : report.sites) {
        const Site* site = runtime::reported_site(plan, entry.site);
        const auto decided = decided_.find(entry.site);
        if (site != nullptr && decided != decided_.end()) {
            decided->second.enter(entry, *site, told);
        }
    }
    report.tuning.emplace();
    for (const tuning::Entry* entry : told) {
        ++(found_->known().is_new(*entry) ? report.tuning->measured : report.tuning->known);
    }
    if (found_) {
        const auto& warnings = found_->known().warnings();
        report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
    }
}

}  // namespace twinkle::worker
