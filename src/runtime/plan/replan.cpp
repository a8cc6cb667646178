#include "runtime/plan/replan.h"

#include "runtime/plan/find_places.h"
#include "runtime/plan/overlaps.h"

#include <algorithm>
#include <map>

namespace twinkle::runtime {

Site* reported_site(Plan& plan, const std::string& name) {
    const auto site = std::find_if(plan.sites.begin(), plan.sites.end(), [&](const Site& one) {
        return one.is_reported() && one.report.site == name;
    });
    return site != plan.sites.end() ? &*site : nullptr;
}

bool refuse_chosen(Plan& plan, Site& site, const std::string& because) {
    refuse(site, because);
    std::stable_partition(site.candidates.begin(), site.candidates.end(),
                          [](const Candidate& one) { return one.serves(); });
    if (site.may_be_replaced()) {
        site.choice = site.candidates.front().choice;
    }
    settle_overlaps(plan);
    return site.choice.has_value();
}

void choose_candidate(Plan& plan, Site& site, const Choice& choice) {
    std::stable_partition(site.candidates.begin(), site.candidates.end(),
                          [&](const Candidate& one) { return one.choice == choice; });
    site.choice = choice;
    site.by_size.reset();
    settle_overlaps(plan);
}

void choose_by_size(Plan& plan, Site& site, const ChoiceBySize& choices) {
    const auto first = std::find_if(choices.parts.begin(), choices.parts.end(),
                                    [](const auto& part) { return part.choice.has_value(); });
    choose_candidate(plan, site, *first->choice);
    site.by_size = choices;
}

void keep_original(Plan& plan, Site& site, const std::string& because) {
    for (Candidate& one : site.candidates) {
        one.refused = one.serves() ? because : one.refused;
    }
    site.choice.reset();
    site.by_size.reset();
    site.report.because = because;
    settle_overlaps(plan);
}

void put_back(Plan& plan, Site& site, const SiteReport& entry) {
    site.put_back = entry;
    site.choice.reset();
    site.by_size.reset();
    settle_overlaps(plan);
}

Plan plan_for_copy(const Job& job, const Plan& plan) {
    Plan copy{.sites = plan.sites,
              .uses = {},
              .rules = plan.rules,
              .may_train = plan.may_train,
              .places = {},
              .warnings = plan.warnings};
    std::map<std::string, const torch::jit::Function*> callers;  // by call
    for (const FunctionCall& call : function_calls(job.model, &copy.uses)) {
        callers[call.site] = call.in_function ? call.caller : nullptr;
    }
    std::map<std::string, torch::jit::Module> modules;
    for (const Instance& instance : instances_of(job.model)) {
        modules.emplace(instance.path, instance.module);
    }
    bool any_place = false;
    for (Site& site : copy.sites) {
        site.instance.module = modules.at(site.instance.path);
        if (auto* call = site.as<CallSite>()) {
            call->in_function = callers.at(site.report.site);
        }
        any_place = any_place || site.as<PlaceSite>() != nullptr;
    }
    if (any_place) {
        find_places_again(job, copy);
    }
    return copy;
}

}  // namespace twinkle::runtime
