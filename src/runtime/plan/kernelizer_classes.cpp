// The part of a kernelize that gives instances which are treated differently different classes.

#include "runtime/plan/kernelizer.h"

#include "runtime/graph/class_name.h"

#include <algorithm>
#include <utility>

namespace twinkle::runtime {

// Where not all instances of a class are treated alike, they get different classes.
void Kernelizer::set_classes_apart() {
    std::vector<std::pair<Site*, Choice>> concerned;
    while (const auto problem = separate()) {
        for (Site* site : sites_below(problem->type)) {
            concerned.emplace_back(site, *std::exchange(site->choice, std::nullopt));
        }
    }
    // Which of them it is that the model exchanges shows when each is tried.
    for (const auto& [site, choice] : concerned) {
        site->choice = choice;
        if (const auto problem = separate()) {
            keep(*site,
                 {Fallback::cannot_compile,
                  "it cannot be treated otherwise than another instance of " +
                      unmangled(problem->type->name()->qualifiedName()) + ": " + problem->because});
        }
    }
    const bool places = std::any_of(sites_.begin(), sites_.end(),
                                    [](const Site& site) { return !site.place.empty(); });
    if (!patterns_ && places) {
        find_places_again();
    }
}

std::optional<NotSeparable> Kernelizer::separate() {
    // What is chosen for an instance itself, and for the calls in its methods.
    using Treatment = std::vector<std::pair<std::string, Choice>>;
    std::map<const void*, Treatment> of_instances;
    for (const Site& site : sites_) {
        if (site.choice && !site.in_function) {
            const std::string call =
                site.is_call ? site.report.site.substr(site.instance.path.size()) : "";
            of_instances[site.instance.module._ivalue().get()].emplace_back(call + site.place,
                                                                            *site.choice);
        }
    }
    Treatments treatments;
    std::vector<Treatment> different;
    for (const auto& [instance, treatment] : of_instances) {
        auto known = std::find(different.begin(), different.end(), treatment);
        known = known == different.end() ? different.insert(known, treatment) : known;
        treatments[instance] = static_cast<std::size_t>(known - different.begin()) + 1;
    }
    const auto separated = separate_classes(model_, treatments);
    if (!separated) {
        return separated.error();
    }
    if (*separated) {
        patterns_.reset();
    }
    std::map<std::string, torch::jit::Module> now;  // clones are new objects
    for (const Instance& instance : instances_of(model_)) {
        now.emplace(instance.path, instance.module);
    }
    for (Site& site : sites_) {
        site.instance.module = now.at(site.instance.path);
    }
    return std::nullopt;
}

// The sites that are chosen for a kernel and are instances of this class, or held by one.
std::vector<Kernelizer::Site*> Kernelizer::sites_below(const c10::ClassTypePtr& type) {
    std::vector<std::string> above;
    for (const Instance& instance : instances_of(model_)) {
        if (instance.module.type() == type) {
            above.push_back(instance.path);
        }
    }
    std::vector<Site*> found;
    std::vector<Site*> chosen;
    for (Site& site : sites_) {
        if (site.choice && !site.in_function) {
            chosen.push_back(&site);
            if (std::any_of(above.begin(), above.end(), [&](const std::string& path) {
                    return site.instance.path == path || site.instance.path.starts_with(path + ".");
                })) {
                found.push_back(&site);
            }
        }
    }
    return found.empty() ? chosen : found;
}

}  // namespace twinkle::runtime
