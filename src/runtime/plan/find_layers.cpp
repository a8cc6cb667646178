#include "runtime/plan/find_layers.h"

#include "base/text.h"
#include "runtime/graph/format.h"
#include "runtime/graph/kernel_method.h"
#include "runtime/plan/left_out.h"

#include <map>
#include <set>

namespace twinkle::runtime {

namespace {

std::string last_part(const std::string& name) {
    return name.substr(name.rfind('.') + 1);
}

// Why a binding is not for this instance.
std::optional<std::string> unfit(const Job& job, const MappedLayer& layer, const Site& site) {
    auto unmet = unmet_condition(layer, site.instance, site.as<LayerSite>()->lost);
    if (!unmet && job.options.unfit) {
        unmet = job.options.unfit(layer, site.instance.path, site.instance.module);
    }
    return unmet;
}

// Gathers the candidates of all bindings; the first whose conditions hold comes first.
void choose_layer(const Job& job, Site& site, const std::vector<const MappedLayer*>& bindings) {
    if (leave_out(job, site)) {
        return;
    }
    if (is_kernelized(site.instance.module)) {
        return keep(job, site, {std::nullopt, "it is kernelized already"});
    }
    Candidates candidates;
    for (const MappedLayer* layer : bindings) {
        Candidates offered = candidates_for(job.mapping, *layer, job.context);
        if (const auto because = unfit(job, *layer, site)) {
            offered.reason = {std::nullopt, *because};
            for (Candidate& one : offered.all) {
                one.refused = *because;
            }
        }
        candidates.add(std::move(offered));
    }
    choose_from(job, site, std::move(candidates));
}

// A name that binds nothing is most often a typing error: show the class that was meant. A preset
// is expected to have such names, unless the model has a class of that very name.
void warn_of_unbound(const Job& job, const std::vector<Instance>& instances, Plan& plan) {
    std::map<std::string, std::string> classes;  // full names by short ones
    std::set<std::string> unbound;               // short names
    std::set<std::string> bound;
    std::set<std::string> all;
    for (const Instance& instance : instances) {
        all.insert(instance.class_name);
    }
    for (const std::string& full : all) {
        bool free = true;
        for (const MappedLayer& layer : job.mapping.layers) {
            if (binds(layer, full)) {
                bound.insert(layer.kernel_name);
                free = false;
            }
        }
        const std::string name = last_part(full);
        classes.emplace(name, full);
        if (free) {
            unbound.insert(name);
        }
    }
    std::vector<std::string> names;
    for (const auto& [name, full] : classes) {
        names.push_back(name);
    }
    for (const MappedLayer& layer : job.mapping.layers) {
        if (!bound.insert(layer.kernel_name).second ||
            (layer.preset && !unbound.contains(layer.kernel_name))) {
            continue;
        }
        std::string text = layer.kernel_name + " binds no class of this model";
        if (const auto near = base::nearest(layer.kernel_name, names)) {
            text +=
                fmt::format("; this would bind the nearest: classes = [\"{}\"]", classes.at(*near));
        }
        plan.warnings.push_back(std::move(text));
    }
}

LayerSite layer_of(const Instance& instance, const PassedParameters& passed) {
    LayerSite layer;
    layer.passed = passed.of(instance.module);
    layer.lost = lost_attributes(instance.module, layer.passed);
    return layer;
}

}  // namespace

void find_layers(const Job& job, const std::vector<Instance>& instances, Plan& plan) {
    std::optional<PassedParameters> passed;  // of the whole model
    for (const Instance& instance : instances) {
        std::vector<const MappedLayer*> bindings;
        for (const MappedLayer& layer : job.mapping.layers) {
            if (binds(layer, instance.class_name)) {
                bindings.push_back(&layer);
            }
        }
        if (bindings.empty()) {
            continue;
        }
        if (!passed) {
            passed.emplace(job.model);
        }
        Site site(instance, reported(instance.path, "layer", instance.class_name),
                  layer_of(instance, *passed));
        choose_layer(job, site, bindings);
        plan.sites.push_back(std::move(site));
    }
    warn_of_unbound(job, instances, plan);
}

}  // namespace twinkle::runtime
