// The part of a kernelize that replaces what patterns say, wherever it is computed.

#include "runtime/graph/format.h"
#include "runtime/plan/kernelizer.h"

#include "runtime/graph/called_instances.h"
#include "runtime/graph/forward_methods.h"
#include "runtime/patterns/original_function.h"
#include "runtime/patterns/pattern_calls.h"
#include "twinkle/error.h"

#include <algorithm>

namespace twinkle::runtime {

namespace jit = torch::jit;

void Kernelizer::find_patterns() {
    if (mapping_.patterns.empty()) {
        return;
    }
    rules_ = compile_patterns(mapping_);
    for (const PatternRule& rule : rules_) {
        if (!rule.problems.empty()) {
            throw Error(
                ErrorCode::malformed,
                {.what = "the pattern " + rule.pattern->name + " cannot be looked for",
                 .where = rule.pattern->file,
                 .why = rule.problems.front(),
                 .hint = "a formula is a plain function in TorchScript's subset of Python"});
        }
    }
    bool any_before = false;
    for (const FunctionCall& call : function_calls(model_)) {
        const auto pattern = std::find_if(
            mapping_.patterns.begin(), mapping_.patterns.end(), [&](const MappedPattern& one) {
                return call.replaced && call.function == pattern_function_name(one.name);
            });
        if (pattern != mapping_.patterns.end()) {
            Site site{{call.path, "", call.instance}, {}, std::nullopt};
            site.is_call = true;
            site.report.site = call.site;
            site.report.kind = "pattern";
            site.report.of = pattern->name;
            keep(site, {std::nullopt, "it is kernelized already"});
            sites_.push_back(std::move(site));
            any_before = true;
        }
    }
    if (any_before) {
        keep_taken_layers();
    }
    patterns_ = runtime::find_patterns(model_, mapping_, rules_);
    const PatternSearch& search = *patterns_;
    report_.warnings.insert(report_.warnings.end(), search.warnings.begin(), search.warnings.end());
    // What comes first in the mapping takes what several would match.
    std::vector<bool> claimed(search.graph.nodes.size(), false);
    const auto first = static_cast<std::ptrdiff_t>(sites_.size());
    for (const PatternSite& place : search.sites) {
        add_pattern(place, claimed);
    }
    std::map<std::string, std::size_t> order;  // of the model
    for (const Instance& instance : instances_of(model_)) {
        order.emplace(instance.path, order.size());
    }
    std::stable_sort(sites_.begin() + first, sites_.end(), [&](const Site& a, const Site& b) {
        return order[a.instance.path] < order[b.instance.path];
    });
    report_unfound_patterns();
}

// What an earlier kernelize has made part of a pattern is still there, but nothing calls it.
void Kernelizer::keep_taken_layers() {
    const CalledInstances called(model_);
    for (Site& site : sites_) {
        if (!site.is_call && site.choice && !called.contains(site.instance.module)) {
            keep(site, {std::nullopt, "it is kernelized already: as part of a pattern"});
        }
    }
}

void Kernelizer::add_pattern(const PatternSite& place, std::vector<bool>& claimed) {
    const auto index = [](std::int32_t node) { return static_cast<std::size_t>(node); };
    if (std::any_of(place.claimed.begin(), place.claimed.end(),
                    [&](std::int32_t node) { return claimed[index(node)]; })) {
        return;
    }
    Site site{place.instance, {}, std::nullopt};
    site.is_call = true;
    const auto forwards = forward_methods(place.instance.module.type());
    site.in_forward = std::find(forwards.begin(), forwards.end(), place.method) != forwards.end();
    site.place = place.key;
    site.report.site = place.site;
    site.report.kind = "pattern";
    site.report.of = place.rule->pattern->name;
    if (!is_left_out(site)) {
        if (!place.match.problem.empty()) {
            keep(site, {Fallback::cannot_compile, place.match.problem});
        } else if (auto choice = choose(mapping_, *place.rule->pattern, context_)) {
            site.choice = *choice;
            for (const std::int32_t node : place.claimed) {
                claimed[index(node)] = true;
            }
        } else {
            keep(site, choice.error());
        }
    }
    sites_.push_back(std::move(site));
}

// Of a preset it is nothing to tell.
void Kernelizer::report_unfound_patterns() {
    for (const MappedPattern& pattern : mapping_.patterns) {
        const bool found = std::any_of(sites_.begin(), sites_.end(), [&](const Site& site) {
            return site.report.kind == "pattern" && site.report.of == pattern.name;
        });
        if (found || pattern.preset) {
            continue;
        }
        report_nowhere("the pattern " + pattern.name + " is nowhere in this model");
    }
}

bool Kernelizer::is_in_chosen_layer(const Site& site) const {
    return std::any_of(sites_.begin(), sites_.end(), [&](const Site& other) {
        const std::string& path = other.instance.path;
        return !other.is_call && other.choice &&
               (path.empty() || site.instance.path == path ||
                site.instance.path.starts_with(path + "."));
    });
}

// Classes that were set apart have graphs of their own.
void Kernelizer::find_places_again() {
    patterns_ = runtime::find_patterns(model_, mapping_, rules_);
    std::map<std::string, const std::string*> keys;
    for (const PatternSite& place : patterns_->sites) {
        keys.emplace(place.site, &place.key);
    }
    for (Site& site : sites_) {
        const auto key = keys.find(site.report.site);
        if (!site.place.empty() && key != keys.end()) {
            site.place = *key->second;
        }
    }
}

// A layer is more than a pattern inside of it. So patterns that hold layers come before them, and
// those in layers after them, where a layer could not take its place.
void Kernelizer::replace_patterns(bool in_layers) {
    std::vector<Site*> chosen;
    for (Site& site : sites_) {
        if (site.choice && site.choice->pattern != nullptr && !site.absorbed &&
            site.report.status != SiteStatus::replaced &&
            (in_layers || !is_in_chosen_layer(site))) {
            chosen.push_back(&site);
        }
    }
    if (chosen.empty()) {
        return;
    }
    if (!patterns_) {
        patterns_ = runtime::find_patterns(model_, mapping_, rules_);
    }
    std::map<std::string, const PatternSite*> places;
    for (const PatternSite& place : patterns_->sites) {
        places.emplace(place.site, &place);
    }
    std::vector<std::pair<Site*, const PatternSite*>> found;
    for (Site* site : chosen) {
        const auto known = in_pattern_places_.find(site->place);
        const auto place = places.find(site->report.site);
        if (known != in_pattern_places_.end()) {
            enter(*site, known->second);
        } else if (place != places.end() && place->second->key == site->place) {
            found.emplace_back(site, place->second);
        } else {
            keep(*site, {std::nullopt, "nothing that is left computes it"});
        }
    }
    put_stand_ins(found);
    for (const auto& [site, place] : found) {
        enter(*site, in_pattern_places_.at(place->key));
    }
}

void Kernelizer::put_stand_ins(const std::vector<std::pair<Site*, const PatternSite*>>& found) {
    std::vector<PatternCall> calls;
    for (const auto& [site, place] : found) {
        const auto [result, first] = in_pattern_places_.try_emplace(place->key);
        if (first) {
            const auto function = stand_in(*site->choice, *place);
            if (function) {
                calls.push_back({place, *function});
            } else {
                result->second = tl::make_unexpected(function.error());
            }
        }
        if (result->second) {
            for (const std::string& path : place->taken) {
                takers_[path] = site;
            }
        }
    }
    for (const auto& [place, problem] : put_calls(patterns_->graph, calls)) {
        in_pattern_places_.at(place->key) =
            tl::make_unexpected(KeepReason{Fallback::cannot_compile, problem});
    }
}

tl::expected<jit::Function*, KeepReason> Kernelizer::stand_in(const Choice& choice,
                                                              const PatternSite& place) {
    const auto unit = place.instance.module.type()->compilation_unit();
    const std::tuple key(static_cast<const void*>(unit.get()),
                         fmt::format("{}|{}", place.shape(), place.number), choice.implementation);
    if (const auto known = stand_ins_.find(key); known != stand_ins_.end()) {
        return known->second;
    }
    if (!originals_) {
        originals_ = std::make_shared<jit::CompilationUnit>();
    }
    const auto make = [&]() -> tl::expected<jit::Function*, KeepReason> {
        const auto original =
            original_of(patterns_->graph, place, *originals_, numbered("", place));
        if (!original) {
            return tl::make_unexpected(KeepReason{Fallback::cannot_compile, original.error()});
        }
        CallShape shape{*original, {}};
        for (const MatchedParameter& parameter : place.match.parameters) {
            shape.constants.push_back(parameter.constant);
        }
        return make_stand_in_for(choice, place.instance.module, shape,
                                 numbered("twinkle_functions.", place), choice.pattern->name);
    };
    return stand_ins_.emplace(key, make()).first->second;
}

}  // namespace twinkle::runtime
