#include "runtime/plan/replace_places.h"

#include "runtime/patterns/image_layouts.h"
#include "runtime/patterns/output_layouts.h"
#include "runtime/patterns/pattern_calls.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace twinkle::runtime {

bool PlaceReplacer::is_in_chosen_layer(const Site& site) const {
    return std::any_of(plan_.sites.begin(), plan_.sites.end(), [&](const Site& other) {
        const std::string& path = other.instance.path;
        return other.is_layer() && other.choice &&
               (site.instance.path == path || is_inside(site.instance.path, path));
    });
}

void PlaceReplacer::replace(bool in_layers) {
    std::vector<Site*> chosen;
    for (Site& site : plan_.sites) {
        if (site.as<PlaceSite>() != nullptr && site.choice && !site.absorbed &&
            !site.is_replaced() && (in_layers || !is_in_chosen_layer(site))) {
            chosen.push_back(&site);
        }
    }
    if (chosen.empty()) {
        return;
    }
    if (!plan_.places) {
        plan_.places = find_patterns(job_.model, job_.mapping, plan_.rules, plan_.may_train);
    }
    if (!in_layers) {
        choose_layouts(chosen);
    }
    std::map<std::string, const PatternSite*> places;
    for (const PatternSite& place : plan_.places->sites) {
        places.emplace(place.site, &place);
    }
    Found found;
    for (Site* site : chosen) {
        const std::string& key = site->as<PlaceSite>()->key;
        const auto known = done_.find(key);
        const auto place = places.find(site->report.site);
        if (known != done_.end()) {
            enter(job_, *site, known->second);
        } else if (place != places.end() && place->second->key == key) {
            found.emplace_back(site, place->second);
        } else {
            keep(job_, *site, {std::nullopt, "nothing that is left computes it"});
        }
    }
    put_stand_ins(found);
    for (const auto& [site, place] : found) {
        enter(job_, *site, done_.at(place->key));
    }
}

void PlaceReplacer::choose_layouts(const std::vector<Site*>& chosen) {
    std::set<std::string> names;
    for (const Site* site : chosen) {
        names.insert(site->report.site);
    }
    std::unordered_set<const void*> layers;
    for (const Site& site : plan_.sites) {
        if (site.is_layer() && site.choice) {
            layers.insert(site.instance.module._ivalue().get());
        }
    }
    choose_image_layouts(*plan_.places, names, layers);
    keep_output_layouts(*plan_.places, names);
}

void PlaceReplacer::put_stand_ins(const Found& found) {
    std::vector<PatternCall> calls;
    for (const auto& [site, place] : found) {
        const auto [result, first] = done_.try_emplace(place->key);
        if (first) {
            const auto function = stand_ins_.of_place(*site, plan_.places->graph, *place);
            if (function) {
                calls.push_back({place, *function});
            } else {
                result->second = tl::make_unexpected(function.error());
            }
        }
        if (result->second) {
            for (const std::string& path : place->taken) {
                holders_.take(path, *site);
            }
        }
    }
    for (const auto& [place, problem] : put_calls(plan_.places->graph, calls)) {
        done_.at(place->key) = tl::make_unexpected(KeepReason{Fallback::cannot_compile, problem});
    }
}

}  // namespace twinkle::runtime
