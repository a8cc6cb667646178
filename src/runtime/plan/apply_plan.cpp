#include "runtime/plan/apply_plan.h"

#include "runtime/plan/holders.h"
#include "runtime/plan/replace_calls.h"
#include "runtime/plan/replace_inlined.h"
#include "runtime/plan/replace_layers.h"
#include "runtime/plan/replace_places.h"
#include "runtime/plan/separate.h"

#include <algorithm>

namespace twinkle::runtime {

namespace {

// A site that may become part of a replaced one is skipped here, and judged later.
void refuse_forbidden_outside(const Plan& plan, const Holders& holders) {
    const bool any = std::any_of(plan.sites.begin(), plan.sites.end(),
                                 [](const Site& site) { return site.choice.has_value(); });
    for (const Site& site : plan.sites) {
        const bool inside = site.function() != nullptr ? any : holders.is_in_chosen(site);
        if (!inside) {
            refuse_forbidden(site);
        }
    }
}

}  // namespace

void apply_plan(const Job& job, Plan& plan, KernelCode& code, StandIns& stand_ins) {
    Holders holders(plan.sites);
    separate(job, plan);
    refuse_forbidden_outside(plan, holders);
    PlaceReplacer places(job, plan, stand_ins, holders);
    places.replace_outside_layers();
    replace_layers(job, plan, code, holders);
    absorb_uncalled(job, plan.sites, holders);
    places.replace_rest();
    replace_inlined(job, plan, stand_ins);
    replace_calls(job, plan, stand_ins, holders);
    for (const Site& site : plan.sites) {
        refuse_forbidden(site);
    }
}

}  // namespace twinkle::runtime
