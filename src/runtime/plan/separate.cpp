#include "runtime/plan/separate.h"

#include "runtime/classes/own_class.h"
#include "runtime/graph/class_name.h"
#include "runtime/plan/find_places.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace twinkle::runtime {

namespace {

// The choices for an instance itself, and for the calls in its methods.
using Treatment = std::vector<std::tuple<std::string, Choice, std::optional<ChoiceBySize>>>;

// The site's place in the instance: empty for the instance itself.
std::string place_of(const Site& site) {
    if (site.is_layer()) {
        return "";
    }
    const auto* place = site.as<PlaceSite>();
    return site.report.site.substr(site.instance.path.size()) +
           (place != nullptr ? place->key : "");
}

Treatments treatments_of(const Plan& plan) {
    std::map<const void*, Treatment> of_instances;
    for (const Site& site : plan.sites) {
        if (site.choice && site.function() == nullptr) {
            of_instances[site.instance.module._ivalue().get()].emplace_back(
                place_of(site), *site.choice, site.by_size);
        }
    }
    Treatments treatments;
    std::vector<Treatment> different;
    for (const auto& [instance, treatment] : of_instances) {
        auto known = std::find(different.begin(), different.end(), treatment);
        known = known == different.end() ? different.insert(known, treatment) : known;
        treatments[instance] = static_cast<std::size_t>(known - different.begin()) + 1;
    }
    return treatments;
}

std::optional<NotSeparable> try_to_separate(const Job& job, Plan& plan) {
    const auto separated = separate_classes(job.model, treatments_of(plan));
    if (!separated) {
        return separated.error();
    }
    if (*separated) {
        plan.places.reset();
    }
    std::map<std::string, torch::jit::Module> now;  // clones are new objects
    for (const Instance& instance : instances_of(job.model)) {
        now.emplace(instance.path, instance.module);
    }
    for (Site& site : plan.sites) {
        site.instance.module = now.at(site.instance.path);
    }
    return std::nullopt;
}

// The sites with a choice that are instances of this class, or held by one; all sites with a choice
// if there are none such.
std::vector<Site*> sites_below(const Job& job, Plan& plan, const c10::ClassTypePtr& type) {
    std::vector<std::string> above;
    for (const Instance& instance : instances_of(job.model)) {
        if (instance.module.type() == type) {
            above.push_back(instance.path);
        }
    }
    std::vector<Site*> found;
    std::vector<Site*> chosen;
    for (Site& site : plan.sites) {
        if (!site.choice || site.function() != nullptr) {
            continue;
        }
        chosen.push_back(&site);
        if (std::any_of(above.begin(), above.end(), [&](const std::string& path) {
                return site.instance.path == path || site.instance.path.starts_with(path + ".");
            })) {
            found.push_back(&site);
        }
    }
    return found.empty() ? chosen : found;
}

}  // namespace

void separate(const Job& job, Plan& plan) {
    std::vector<std::pair<Site*, Choice>> concerned;
    while (const auto problem = try_to_separate(job, plan)) {
        for (Site* site : sites_below(job, plan, problem->type)) {
            concerned.emplace_back(site, *std::exchange(site->choice, std::nullopt));
        }
    }
    // Tries each alone to find which of them the model exchanges.
    for (const auto& [site, choice] : concerned) {
        site->choice = choice;
        if (const auto problem = try_to_separate(job, plan)) {
            keep(job, *site,
                 {Fallback::cannot_compile,
                  "it cannot be treated otherwise than another instance of " +
                      unmangled(problem->type->name()->qualifiedName()) + ": " + problem->because});
        }
    }
    const bool any_place = std::any_of(plan.sites.begin(), plan.sites.end(), [](const Site& site) {
        return site.as<PlaceSite>() != nullptr;
    });
    if (!plan.places && any_place) {
        find_places_again(job, plan);
    }
}

}  // namespace twinkle::runtime
