#include "worker/measured_choice.h"

#include "runtime/graph/format.h"
#include "runtime/plan/replan.h"

#include <algorithm>

namespace twinkle::worker {

using runtime::Site;
using runtime::Spread;

namespace {

constexpr double least_difference = 1.02;  // less is noise on any machine

void add(Spread& sum, const Spread& one) {
    sum.lower += one.lower;
    sum.median += one.median;
    sum.upper += one.upper;
}

Spread scaled(const Spread& spread, double by) {
    return {spread.lower / by, spread.median / by, spread.upper / by};
}

// The quartiles lie apart, and the medians are not nearly equal.
bool surely_faster(const Spread& one, const Spread& other) {
    return one.upper < other.lower && one.median * least_difference <= other.median;
}

std::string times_as_fast(const Spread& original, const Spread& candidate) {
    return fmt::format("{:.2f} times as fast as the original here",
                       original.median / candidate.median);
}

// The times come from a child process that has run foreign code.
bool was_measured(const runtime::Verdict& verdict) {
    return verdict.times.size() == 2 && !verdict.times[0].empty() && !verdict.times[1].empty();
}

std::string shapes_of(const torch::jit::Module& module) {
    std::string text;
    for (const at::Tensor& parameter : module.parameters()) {
        text += fmt::format("{}[{}]", c10::toString(parameter.scalar_type()),
                            fmt::join(parameter.sizes(), ","));
    }
    return text;
}

}  // namespace

MeasuredChoice::Key MeasuredChoice::key_of(const Site& site) {
    return {site.report.kind, site.report.of,
            site.is_layer() ? shapes_of(site.instance.module) : ""};
}

const MeasuredChoice::Times* MeasuredChoice::Group::times_of(const runtime::Choice& choice) const {
    const auto found = std::find_if(measured.begin(), measured.end(),
                                    [&](const auto& one) { return one.first == choice; });
    return found != measured.end() ? &found->second : nullptr;
}

const std::pair<runtime::Choice, MeasuredChoice::Times>* MeasuredChoice::Group::fastest_for(
    const Site& site) const {
    const std::pair<runtime::Choice, Times>* best = nullptr;
    for (const auto& one : measured) {
        const auto& [original, candidate] = one.second;
        const bool serves = std::any_of(
            site.candidates.begin(), site.candidates.end(),
            [&](const auto& known) { return known.serves() && known.choice == one.first; });
        if (!serves || !surely_faster(candidate, original)) {
            continue;
        }
        // Each was measured beside the original: what slows the machine down slows both.
        if (best == nullptr ||
            surely_faster(scaled(candidate, original.median),
                          scaled(best->second.candidate, best->second.original.median))) {
            best = &one;
        }
    }
    return best;
}

void MeasuredChoice::note(const Report& report,
                          const std::map<std::string, runtime::Verdict>& verdicts,
                          runtime::Plan& plan) {
    for (const SiteReport& entry : report.sites) {
        const auto verdict = verdicts.find(entry.site);
        const Site* site = runtime::reported_site(plan, entry.site);
        if (entry.status != SiteStatus::replaced || verdict == verdicts.end() || site == nullptr ||
            !site->choice || !was_measured(verdict->second)) {
            continue;
        }
        const Spread original = runtime::spread_of(verdict->second.times[0]);
        const Spread candidate = runtime::spread_of(verdict->second.times[1]);
        if (!speeds_
                 .try_emplace({entry.site, site->choice->id()}, times_as_fast(original, candidate))
                 .second) {
            continue;  // noted before
        }
        Group& group = groups_[key_of(*site)];
        auto known = std::find_if(group.measured.begin(), group.measured.end(),
                                  [&](const auto& one) { return one.first == *site->choice; });
        if (known == group.measured.end()) {
            known = group.measured.insert(known, {*site->choice, Times{}});
        }
        add(known->second.original, original);
        add(known->second.candidate, candidate);
    }
}

// The next candidate that nobody has measured, else the fastest of all.
bool MeasuredChoice::change(runtime::Plan& plan, Site& site) const {
    const auto group = groups_.find(key_of(site));
    // A site that the inputs do not reach keeps its first candidate.
    if (group == groups_.end() || !site.choice ||
        !speeds_.contains({site.report.site, site.choice->id()})) {
        return false;
    }
    const auto next =
        std::find_if(site.candidates.begin(), site.candidates.end(), [&](const auto& one) {
            return one.serves() && group->second.times_of(one.choice) == nullptr;
        });
    if (next != site.candidates.end()) {
        runtime::choose_candidate(plan, site, runtime::Choice(next->choice));
        return true;
    }
    const auto* best = group->second.fastest_for(site);
    const runtime::Choice before = *site.choice;
    for (runtime::Candidate& one : site.candidates) {
        const Times* times = group->second.times_of(one.choice);
        const bool taken = best != nullptr && one.choice == best->first;
        if (one.serves() && times != nullptr && !taken) {
            one.refused = times_as_fast(times->original, times->candidate);
        }
    }
    if (best != nullptr) {
        runtime::choose_candidate(plan, site, best->first);
    } else {
        const Times& times = *group->second.times_of(before);
        runtime::keep_original(plan, site,
                               "no kernel is faster here: " + before.describe() + " is " +
                                   times_as_fast(times.original, times.candidate));
    }
    return site.choice != before;
}

bool MeasuredChoice::change(runtime::Plan& plan) {
    bool changed = false;
    for (Site& site : plan.sites) {
        changed = (site.is_reported() && change(plan, site)) || changed;
    }
    return changed;
}

void MeasuredChoice::enter(Report& report, runtime::Plan& plan) const {
    for (SiteReport& site : report.sites) {
        const Site* planned = runtime::reported_site(plan, site.site);
        if (planned == nullptr || (planned->choice && site.status != SiteStatus::replaced)) {
            continue;  // what was chosen could not take its place, as the entry says
        }
        site.candidates = runtime::report_of(*planned).candidates;
        if (!planned->choice) {
            continue;
        }
        const auto speed = speeds_.find({site.site, planned->choice->id()});
        if (speed != speeds_.end()) {
            site.because += "; " + speed->second;
        }
    }
}

}  // namespace twinkle::worker
