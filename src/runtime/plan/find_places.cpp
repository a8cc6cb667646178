#include "runtime/plan/find_places.h"

#include "runtime/graph/called_instances.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/plan/left_out.h"
#include "runtime/plan/named_in_vain.h"
#include "runtime/plan/overlaps.h"
#include "runtime/selection/modes.h"
#include "twinkle/error.h"

#include <algorithm>
#include <map>

namespace twinkle::runtime {

namespace {

void refuse_malformed(const std::vector<PatternRule>& rules) {
    for (const PatternRule& rule : rules) {
        if (!rule.problems.empty()) {
            throw Error(
                ErrorCode::malformed,
                {.what = "the pattern " + rule.pattern->name + " cannot be looked for",
                 .where = rule.pattern->file,
                 .why = rule.problems.front(),
                 .hint = "a formula is a plain function in TorchScript's subset of Python"});
        }
    }
}

// Adds the calls that an earlier kernelize has put in the place of patterns. Returns whether there
// are any.
bool add_former(const Job& job, Plan& plan) {
    const auto& patterns = job.mapping.patterns;
    bool any = false;
    for (const FunctionCall& call : function_calls(job.model)) {
        const auto pattern =
            std::find_if(patterns.begin(), patterns.end(), [&](const MappedPattern& one) {
                return call.replaced && call.function == pattern_function_name(one.name);
            });
        if (pattern == patterns.end()) {
            continue;
        }
        Site site({call.path, "", call.instance}, reported(call.site, "pattern", pattern->name),
                  CallSite{});
        keep(job, site, {std::nullopt, "it is kernelized already"});
        plan.sites.push_back(std::move(site));
        any = true;
    }
    return any;
}

// Layers that an earlier kernelize has made part of a pattern still exist, but nothing calls them.
void keep_taken_layers(const Job& job, Plan& plan) {
    const CalledInstances called(job.model);
    for (Site& site : plan.sites) {
        if (site.is_layer() && site.choice && !called.contains(site.instance.module)) {
            keep(job, site, {std::nullopt, "it is kernelized already: as part of a pattern"});
        }
    }
}

void add_place(const Job& job, const PatternSite& place, std::size_t rank, Plan& plan) {
    const auto forwards = forward_methods(place.instance.module.type());
    const bool in_forward =
        std::find(forwards.begin(), forwards.end(), place.method) != forwards.end();
    Site site(place.instance, reported(place.site, "pattern", place.rule->pattern->name),
              PlaceSite{in_forward, place.key, rank, place.claimed, place.taken});
    if (!leave_out(job, site)) {
        if (place.match.problem.empty()) {
            choose_from(job, site, candidates_for(job.mapping, *place.rule->pattern, job.context));
        } else {
            keep(job, site, {Fallback::cannot_compile, place.match.problem});
        }
    }
    plan.sites.push_back(std::move(site));
}

// Sorts them in the order of the modules.
void sort_places(const Job& job, Plan& plan, std::ptrdiff_t first) {
    std::map<std::string, std::size_t> order;
    for (const Instance& instance : instances_of(job.model)) {
        order.emplace(instance.path, order.size());
    }
    std::stable_sort(plan.sites.begin() + first, plan.sites.end(),
                     [&](const Site& a, const Site& b) {
                         return order[a.instance.path] < order[b.instance.path];
                     });
}

// Does not warn for a preset's patterns.
void warn_of_unfound(const Job& job, Plan& plan) {
    for (const MappedPattern& pattern : job.mapping.patterns) {
        const bool found = std::any_of(plan.sites.begin(), plan.sites.end(), [&](const Site& site) {
            return site.report.kind == "pattern" && site.report.of == pattern.name && !site.outdone;
        });
        if (!found && !pattern.preset) {
            report_nowhere(job, plan, "the pattern " + pattern.name + " is nowhere in this model");
        }
    }
}

}  // namespace

void find_places(const Job& job, Plan& plan) {
    if (job.mapping.patterns.empty()) {
        return;
    }
    plan.rules = compile_patterns(job.mapping);
    refuse_malformed(plan.rules);
    if (add_former(job, plan)) {
        keep_taken_layers(job, plan);
    }
    plan.may_train = wants_training(job.context.mode);
    plan.places = find_patterns(job.model, job.mapping, plan.rules, plan.may_train);
    const auto& warnings = plan.places->warnings;
    plan.warnings.insert(plan.warnings.end(), warnings.begin(), warnings.end());
    const auto first = static_cast<std::ptrdiff_t>(plan.sites.size());
    for (const PatternSite& place : plan.places->sites) {
        add_place(job, place, plan.sites.size(), plan);
    }
    sort_places(job, plan, first);
    settle_overlaps(plan);
    warn_of_unfound(job, plan);
}

void find_places_again(const Job& job, Plan& plan) {
    plan.places = find_patterns(job.model, job.mapping, plan.rules, plan.may_train);
    std::map<std::string, const std::string*> keys;
    for (const PatternSite& place : plan.places->sites) {
        keys.emplace(place.site, &place.key);
    }
    for (Site& site : plan.sites) {
        const auto key = keys.find(site.report.site);
        if (auto* place = site.as<PlaceSite>(); place != nullptr && key != keys.end()) {
            place->key = *key->second;
        }
    }
}

}  // namespace twinkle::runtime
