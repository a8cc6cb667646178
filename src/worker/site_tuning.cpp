#include "worker/site_tuning.h"

#include "runtime/graph/format.h"
#include "runtime/plan/replan.h"
#include "runtime/verify/run_error.h"
#include "worker/tuning_report.h"

#include <algorithm>
#include <utility>

namespace twinkle::worker {

using runtime::Choice;
using runtime::Site;

namespace {

// The times come from a child process that has run foreign code.
bool was_measured(const runtime::SizeVerdict& verdict) {
    return verdict.times.size() == 2 && !verdict.times[0].empty() && !verdict.times[1].empty();
}

// Empty: it is right in calls of this size. What is wrong as a whole (gradients, or it has ended
// its process) is so in every size.
std::string problem_of(const runtime::Verdict& verdict, std::size_t size) {
    const bool apart = size < verdict.by_size.size();
    if (apart && (!verdict.by_size[size].problem.empty() || !verdict.by_size[size].compared)) {
        return verdict.by_size[size].problem;
    }
    return verdict.right ? "" : verdict.because;
}

bool serves(const Site& site, const Choice& choice) {
    return std::any_of(site.candidates.begin(), site.candidates.end(),
                       [&](const auto& one) { return one.serves() && one.choice == choice; });
}

bool may_change(const Site& site) {
    return site.is_reported() && !site.put_back && !site.left_out;
}

}  // namespace

std::vector<std::string> SiteTuning::unknown(const Report& report) const {
    std::vector<std::string> sites;
    for (const SiteReport& entry : report.sites) {
        if (entry.status == SiteStatus::replaced && !sites_.contains(entry.site) &&
            !unreached_.contains(entry.site)) {
            sites.push_back(entry.site);
        }
    }
    return sites;
}

void SiteTuning::add(const std::vector<std::string>& asked, const runtime::Survey& survey,
                     runtime::Plan& plan) {
    if (!known_) {
        known_.emplace(facts_.platform, survey.threads);
        facts_.cold = survey.cold;
    }
    for (const std::string& name : asked) {
        const auto surveyed = survey.sites.find(name);
        const Site* site = runtime::reported_site(plan, name);
        if (surveyed == survey.sites.end() || site == nullptr) {
            unreached_.insert(name);
            continue;
        }
        const SizedSite sized(*site, surveyed->second, facts_);
        if (!sized.is_reached()) {  // keeps its first candidate
            unreached_.insert(name);
            continue;
        }
        sized.look_up(*known_);
        sites_.emplace(name, sized);
    }
}

SiteTuning::Pair SiteTuning::pair_of(const SizedSite& sized, std::size_t size,
                                     const Choice& choice) {
    return {sized.sizes()[size].invocation.hash(), candidate_of(choice).id()};
}

std::set<std::size_t> SiteTuning::untried(const SizedSite& sized, const Choice& choice) const {
    std::set<std::size_t> sizes = sized.missing(*known_, choice);
    std::erase_if(sizes,
                  [&](std::size_t size) { return tried_.contains(pair_of(sized, size, choice)); });
    return sizes;
}

bool SiteTuning::is_held(const SizedSite& sized, std::size_t size) const {
    return held_.contains(sized.sizes()[size].invocation.hash());
}

const Choice* SiteTuning::next(const SizedSite& sized, const Site& site,
                               std::set<Pair>& taken) const {
    for (const Choice& choice : sized.candidates()) {
        if (serves(site, choice) && !is_configured(site, choice)) {
            return &choice;
        }
        const auto sizes = untried(sized, choice);
        const bool free = std::any_of(sizes.begin(), sizes.end(), [&](std::size_t size) {
            return !is_held(sized, size) && !taken.contains(pair_of(sized, size, choice));
        });
        if (free && serves(site, choice)) {
            for (const std::size_t size : sizes) {
                taken.insert(pair_of(sized, size, choice));
            }
            return &choice;
        }
    }
    return nullptr;
}

bool SiteTuning::is_open(const SizedSite& sized, const Site& site) const {
    return std::any_of(sized.candidates().begin(), sized.candidates().end(),
                       [&](const Choice& choice) {
                           return serves(site, choice) && !untried(sized, choice).empty();
                       });
}

// Only what is measured for inference: with gradients operators are called by code of autograd.
bool SiteTuning::is_configured(const Site& site, const Choice& choice) const {
    return facts_.mode != RunMode::inference || choice.kernel == nullptr || !choice.cfg.empty() ||
           configured_.contains({site.report.site, choice.id()});
}

bool SiteTuning::configure(const torch::jit::Module& model, const Report& report,
                           runtime::Plan& plan) {
    bool any = false;
    for (const SiteReport& entry : report.sites) {
        Site* site = runtime::reported_site(plan, entry.site);
        const auto sized = sites_.find(entry.site);
        if (site == nullptr || sized == sites_.end() || !site->choice || site->by_size ||
            is_configured(*site, *site->choice)) {
            continue;
        }
        any = true;
        configured_.emplace(entry.site, site->choice->id());
        if (entry.status != SiteStatus::replaced) {
            continue;
        }
        for (auto& [choice, allowed] :
             configurations_.of(model, *site, sized->second, known_->threads())) {
            site->candidates.push_back({choice, ""});
            sized->second.add(choice, std::move(allowed));
        }
    }
    return any;
}

const SizedSite* SiteTuning::undecided(const Site& site) const {
    const auto sized = sites_.find(site.report.site);
    const bool open =
        sized != sites_.end() && may_change(site) && !decided_.contains(site.report.site);
    return open ? &sized->second : nullptr;
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
    held_.clear();
    known_->look_again();
    for (auto& [name, sized] : sites_) {
        sized.look_up(*known_);
    }
}

void SiteTuning::release() {
    if (known_) {
        known_->release();
    }
}

bool SiteTuning::change(runtime::Plan& plan) {
    bool changed = false;
    std::set<Pair> taken;
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
            changed = decide(plan, site, *sized) || changed;
        } else if (site.choice != *wanted) {
            runtime::choose_candidate(plan, site, Choice(*wanted));
            changed = true;
        }
    }
    return changed;
}

bool SiteTuning::offer(const Report& report, runtime::Plan& plan) const {
    bool any = false;
    std::set<Pair> taken;
    for (const SiteReport& entry : report.sites) {
        Site* site = runtime::reported_site(plan, entry.site);
        const SizedSite* sized = site != nullptr ? undecided(*site) : nullptr;
        if (!differ_ || entry.status != SiteStatus::replaced || sized == nullptr) {
            continue;
        }
        const Choice* wanted = next(*sized, *site, taken);
        if (wanted != nullptr && is_configured(*site, *wanted)) {
            runtime::choose_candidate(plan, *site, Choice(*wanted));
            any = true;
        }
    }
    return any;
}

std::optional<runtime::Verdict> SiteTuning::wrong_in_all(const SizedSite& sized,
                                                         const Choice& choice) const {
    std::optional<runtime::Verdict> verdict;
    for (std::size_t i = 0; i < sized.sizes().size(); ++i) {
        const SizedSite::Size& size = sized.sizes()[i];
        const auto* entry = known_->find(size.invocation, candidate_of(choice));
        if (entry == nullptr || entry->problem.empty()) {
            if (size.tuned && sized.is_allowed(choice, i)) {
                return std::nullopt;
            }
        } else if (runtime::says_cannot_be_captured(entry->problem)) {
            return std::nullopt;  // its values are right
        } else if (!verdict) {
            verdict.emplace().because = entry->problem;
            verdict->ran = !runtime::says_cannot_be_run(entry->problem) &&
                           !died_.contains(pair_of(sized, i, choice));
        }
    }
    return verdict;
}

std::optional<runtime::Verdict> SiteTuning::all_wrong(const Site& site,
                                                      const SizedSite& sized) const {
    std::optional<runtime::Verdict> first;
    for (const Choice& choice : sized.candidates()) {
        const auto verdict = wrong_in_all(sized, choice);
        if (!verdict && serves(site, choice)) {
            return std::nullopt;
        }
        first = first ? first : verdict;
    }
    return first;
}

std::optional<std::pair<std::string, runtime::Verdict>> SiteTuning::all_wrong(
    const runtime::Plan& plan) const {
    for (const Site& site : plan.sites) {
        const SizedSite* sized = undecided(site);
        if (const auto verdict = sized != nullptr ? all_wrong(site, *sized) : std::nullopt) {
            return std::pair(site.report.site, *verdict);
        }
    }
    return std::nullopt;
}

bool SiteTuning::decide(runtime::Plan& plan, Site& site, const SizedSite& sized) {
    Decided& decided = decided_[site.report.site];
    decided.sizes = sized.measured(*known_, site);
    decided.parts = tuning::choose_by_size(decided.sizes);
    const std::optional<Choice> before = site.choice;
    std::set<std::size_t> taken;
    for (const tuning::SizePart& part : decided.parts) {
        taken.insert(part.candidate);
    }
    std::vector<std::string> reasons;
    for (std::size_t i = 0; i < sized.candidates().size(); ++i) {
        const auto here =
            std::find_if(site.candidates.begin(), site.candidates.end(),
                         [&](const auto& one) { return one.choice == sized.candidates()[i]; });
        if (!taken.contains(i + 1) && here->serves()) {
            here->refused = why_not(sized, decided, i + 1);
            const bool slow = here->refused == speed_text(decided.sizes, i + 1);
            reasons.push_back(here->choice.describe() + (slow ? " is " : ": ") + here->refused);
        }
    }
    if (decided.parts.size() > 1) {
        runtime::choose_by_size(plan, site, sized.choice_of(decided.parts));
        return true;
    }
    if (decided.parts.front().candidate == 0) {
        runtime::keep_original(
            plan, site, "no kernel is faster here: " + fmt::format("{}", fmt::join(reasons, ", ")));
    } else {
        runtime::choose_candidate(plan, site,
                                  sized.candidates()[decided.parts.front().candidate - 1]);
    }
    return site.choice != before;
}

std::string SiteTuning::why_not(const SizedSite& sized, const Decided& decided,
                                std::size_t candidate) const {
    for (const SizedSite::Size& size : sized.sizes()) {
        const auto* entry =
            known_->find(size.invocation, candidate_of(sized.candidates()[candidate - 1]));
        if (entry != nullptr && !entry->problem.empty()) {
            return entry->problem;
        }
    }
    const std::string speed = speed_text(decided.sizes, candidate);
    return speed.empty() ? "not measured: the time was up" : speed;
}

std::map<std::string, runtime::SizeGroups> SiteTuning::to_measure(const Report& report,
                                                                  runtime::Plan& plan) {
    std::map<std::string, runtime::SizeGroups> groups;
    std::string first;  // kind of calls: of one, all candidates are measured at least once
    std::set<Pair> taken;
    for (const SiteReport& entry : report.sites) {
        const Site* site = runtime::reported_site(plan, entry.site);
        const SizedSite* sized = site != nullptr ? undecided(*site) : nullptr;
        if (entry.status != SiteStatus::replaced || sized == nullptr || !site->choice) {
            continue;
        }
        std::set<std::size_t> timed;
        for (const std::size_t size : untried(*sized, *site->choice)) {
            const Invocation& invocation = sized->sizes()[size].invocation;
            if (!known_->take(invocation, longest_)) {
                held_.insert(invocation.hash());
            } else if (sized->missing(*known_, *site->choice).contains(size) &&
                       taken.insert(pair_of(*sized, size, *site->choice)).second) {
                timed.insert(size);
            }
        }
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
    for (const std::size_t size : timed) {
        tried_.insert(pair_of(sites_.at(site), size, choice));
    }
}

std::size_t SiteTuning::remaining(const runtime::Plan& plan) const {
    std::set<Pair> all;
    for (const Site& site : plan.sites) {
        const SizedSite* sized = undecided(site);
        if (sized == nullptr) {
            continue;
        }
        for (const Choice& choice : sized->candidates()) {
            for (const std::size_t size : untried(*sized, choice)) {
                all.insert(pair_of(*sized, size, choice));
            }
        }
    }
    return all.size();
}

void SiteTuning::note(const std::string& site, const Choice& choice,
                      const runtime::Verdict& verdict) {
    const auto found = sites_.find(site);
    if (found == sites_.end()) {
        return;
    }
    const SizedSite& sized = found->second;
    const tuning::Candidate candidate = candidate_of(choice);
    const auto& sizes = sized.sizes();
    const bool judged = verdict.by_size.size() == sizes.size();  // else it has ended its process
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (!judged) {
            died_.insert(pair_of(sized, i, choice));
        }
        if (const std::string problem = problem_of(verdict, i); !problem.empty()) {
            const bool remember = judged && !runtime::says_cannot_be_captured(problem);
            known_->banned(sizes[i].invocation, candidate, problem, remember);
        } else if (judged && was_measured(verdict.by_size[i])) {
            known_->measured(sizes[i].invocation, sized.original(), candidate,
                             verdict.by_size[i].times);
        }
    }
}

void SiteTuning::enter(Report& report, runtime::Plan& plan) const {
    std::set<const tuning::Entry*> told;
    for (SiteReport& entry : report.sites) {
        const Site* site = runtime::reported_site(plan, entry.site);
        const auto decided = decided_.find(entry.site);
        if (site == nullptr || decided == decided_.end()) {
            continue;
        }
        const SizedSite& sized = sites_.at(entry.site);
        entry.measured = measured_report(decided->second.sizes, sized, *known_, told);
        if (site->choice && entry.status != SiteStatus::replaced) {
            continue;  // what was chosen could not take its place, as the entry says
        }
        entry.candidates = runtime::report_of(*site).candidates;
        if (site->choice) {
            entry.by_size = site->by_size ? parts_report(decided->second.parts, sized)
                                          : std::vector<SizeChoiceReport>();
            entry.because += because_of(decided->second.parts, decided->second.sizes, sized);
        }
    }
    report.tuning.emplace();
    for (const tuning::Entry* entry : told) {
        ++(known_->is_new(*entry) ? report.tuning->measured : report.tuning->known);
    }
    if (known_) {
        report.warnings.insert(report.warnings.end(), known_->warnings().begin(),
                               known_->warnings().end());
    }
}

}  // namespace twinkle::worker
