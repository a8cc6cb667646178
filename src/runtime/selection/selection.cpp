#include "runtime/selection/selection.h"
#include "runtime/format.h"

#include "base/text.h"
#include "runtime/rewrite/class_name.h"
#include "runtime/rewrite/host_attributes.h"
#include "runtime/selection/modes.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace {

bool serves_device(const LayerCandidate& candidate, const std::string& device) {
    return candidate.device == device || candidate.device == "any" ||
           (candidate.device == "metal" && device == "mps");
}

bool serves_capability(const LayerCandidate& candidate, const std::optional<int>& capability) {
    return !candidate.capability || (capability && candidate.capability->first <= *capability &&
                                     *capability <= candidate.capability->second);
}

long range_size(const LayerCandidate& candidate) {
    return candidate.capability ? candidate.capability->second - candidate.capability->first
                                : std::numeric_limits<int>::max();
}

// Why the flags of a layer exclude a mode, if they do.
std::optional<std::string> flags_exclude(const LayerCandidate& candidate, const std::string& mode) {
    if (wants_training(mode) && !candidate.has_backward) {
        return "the layer has no backward (has_backward = False)";
    }
    if (wants_compile(mode) && !candidate.can_torch_compile) {
        return "the layer cannot be compiled (can_torch_compile = False)";
    }
    return std::nullopt;
}

std::string why_nothing_is_mapped(const Mapping& mapping, const MappedLayer& layer) {
    for (const Decision& decision : mapping.decisions) {
        if (decision.what == "layer " + layer.kernel_name && !decision.chosen) {
            return decision.because;
        }
    }
    return "nothing is mapped to " + layer.kernel_name;
}

const MappedKernel* kernel_of(const Mapping& mapping, const LayerCandidate& candidate,
                              const std::string& device) {
    const MappedKernel* any = nullptr;
    for (const MappedKernel& kernel : mapping.kernels) {
        if (kernel.name == candidate.kernel && kernel.device == device) {
            return &kernel;
        }
        if (kernel.name == candidate.kernel && kernel.device == "any") {
            any = &kernel;
        }
    }
    return any;
}

}  // namespace

bool binds(const MappedLayer& layer, const std::string& class_name) {
    return std::any_of(layer.classes.begin(), layer.classes.end(), [&](const std::string& pattern) {
        return base::glob_match(pattern, class_name);
    });
}

tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedLayer& layer,
                                        const SelectionContext& context) {
    const auto refused = [](Fallback fallback, std::string because) {
        return tl::make_unexpected(KeepReason{fallback, std::move(because)});
    };
    std::vector<const LayerCandidate*> here;
    std::set<std::string> devices;
    for (const LayerCandidate& candidate : layer.candidates) {
        devices.insert(candidate.device);
        if (serves_device(candidate, context.device)) {
            here.push_back(&candidate);
        }
    }
    if (layer.candidates.empty()) {
        return refused(Fallback::no_layer, why_nothing_is_mapped(mapping, layer));
    }
    if (here.empty()) {
        return refused(Fallback::no_device,
                       fmt::format("{} has no kernel for {}, only for {}", layer.kernel_name,
                                   context.device, fmt::join(devices, ", ")));
    }
    std::erase_if(here,
                  [&](const auto* one) { return !serves_capability(*one, context.capability); });
    if (here.empty()) {
        return refused(
            Fallback::no_compatible_properties,
            fmt::format("no capability range of {} contains this device", layer.kernel_name));
    }
    std::stable_sort(here.begin(), here.end(),
                     [](const auto* a, const auto* b) { return range_size(*a) < range_size(*b); });
    std::erase_if(here,
                  [&](const auto* one) { return range_size(*one) != range_size(*here.front()); });

    std::string excluded;
    for (const std::string& mode : search_order(context.mode)) {
        for (const LayerCandidate* candidate : here) {
            if (candidate->mode != mode) {
                continue;
            }
            if (auto why = flags_exclude(*candidate, context.mode)) {
                excluded = *why;
                continue;
            }
            if (const MappedKernel* kernel = kernel_of(mapping, *candidate, context.device)) {
                return Choice{&layer, candidate, kernel};
            }
            return refused(Fallback::no_device, fmt::format("the mapping has no build of {} for {}",
                                                            candidate->kernel, context.device));
        }
    }
    return refused(Fallback::no_compatible_mode,
                   excluded.empty()
                       ? fmt::format("{} is not registered for {}", layer.kernel_name, context.mode)
                       : excluded);
}

std::optional<std::string> unmet_condition(const MappedLayer& layer, const Instance& instance) {
    if (!layer.modules.empty() &&
        std::none_of(layer.modules.begin(), layer.modules.end(), [&](const std::string& pattern) {
            return base::glob_match(pattern, instance.path);
        })) {
        return "the binding names other instances (modules)";
    }
    for (const auto& [name, expected] : layer.when) {
        const auto actual = attribute_of(instance.module, name);
        if (!actual) {
            return "the saved model has lost the attribute " + name +
                   ", on which the binding depends";
        }
        if (!equals(*actual, expected)) {
            return fmt::format("its {} is not {}", name, to_text(expected));
        }
    }
    for (const auto& [name, classes] : layer.when_submodule) {
        if (!instance.module.hasattr(name) || !instance.module.attr(name).isModule()) {
            return "it has no submodule " + name + ", on which the binding depends";
        }
        const std::string type =
            unmangled(instance.module.attr(name).toModule().type()->name()->qualifiedName());
        if (std::find(classes.begin(), classes.end(), type) == classes.end()) {
            return fmt::format("its {} is {}, which this kernel does not compute", name, type);
        }
    }
    return std::nullopt;
}

}  // namespace twinkle::runtime
