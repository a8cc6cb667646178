#include "runtime/plan/put_back.h"

#include "runtime/plan/find_places.h"
#include "runtime/plan/overlaps.h"

#include <algorithm>
#include <map>

namespace twinkle::runtime {

void put_back(Plan& plan, const SiteReport& entry) {
    const auto site = std::find_if(plan.sites.begin(), plan.sites.end(), [&](const Site& one) {
        return one.is_reported() && one.report.site == entry.site;
    });
    if (site != plan.sites.end()) {
        site->put_back = entry;
        site->choice.reset();
        settle_overlaps(plan);
    }
}

Plan plan_for_copy(const Job& job, const Plan& plan) {
    Plan copy{plan.sites, {}, plan.rules, {}, plan.warnings};
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
