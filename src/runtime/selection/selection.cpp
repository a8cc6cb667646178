#include "runtime/selection/selection.h"
#include "runtime/graph/format.h"

#include "base/text.h"
#include "runtime/graph/class_name.h"
#include "runtime/layers/host_attributes.h"
#include "runtime/model/program_function.h"
#include "runtime/selection/modes.h"

#include <algorithm>
#include <set>

namespace twinkle::runtime {

namespace {

// What of a candidate decides.
struct Offer {
    std::string device;
    std::optional<std::pair<int, int>> capability;
    std::string mode;
    bool has_backward = true;
    bool can_torch_compile = false;
    std::size_t index = 0;
};

bool serves_device(const Offer& candidate, const std::string& device) {
    return candidate.device == device || candidate.device == "any" ||
           (candidate.device == "metal" && device == "mps");
}

bool serves_capability(const Offer& candidate, const std::optional<int>& capability) {
    return !candidate.capability || (capability && candidate.capability->first <= *capability &&
                                     *capability <= candidate.capability->second);
}

long range_size(const Offer& candidate) {
    return candidate.capability ? candidate.capability->second - candidate.capability->first
                                : std::numeric_limits<int>::max();
}

// Why the flags of a layer exclude a mode, if they do.
std::optional<std::string> flags_exclude(const Offer& candidate, const std::string& mode) {
    if (wants_training(mode) && !candidate.has_backward) {
        return "it has no backward (has_backward = False)";
    }
    if (wants_compile(mode) && !candidate.can_torch_compile) {
        return "it cannot be compiled (can_torch_compile = False)";
    }
    return std::nullopt;
}

std::string why_nothing_is_mapped(const Mapping& mapping, const std::string& kind,
                                  const std::string& name) {
    for (const Decision& decision : mapping.decisions) {
        if (decision.what == kind + name && !decision.chosen) {
            return decision.because;
        }
    }
    return "nothing is mapped to " + name;
}

const MappedKernel* kernel_of(const Mapping& mapping, const std::string& name,
                              const std::string& device) {
    const MappedKernel* any = nullptr;
    for (const MappedKernel& kernel : mapping.kernels) {
        if (kernel.name == name && kernel.device == device) {
            return &kernel;
        }
        if (kernel.name == name && kernel.device == "any") {
            any = &kernel;
        }
    }
    return any;
}

}  // namespace

const FunctionCandidate* Choice::implementation() const {
    if (const auto* function = as<FunctionChoice>()) {
        return function->candidate;
    }
    const auto* pattern = as<PatternChoice>();
    return pattern != nullptr ? pattern->candidate : nullptr;
}

std::string Choice::bound_name() const {
    if (const auto* layer = as<LayerChoice>()) {
        return layer->binding->kernel_name;
    }
    const auto* pattern = as<PatternChoice>();
    return pattern != nullptr ? pattern->binding->name : as<FunctionChoice>()->binding->func_name;
}

const std::string& Choice::mode() const {
    const auto* layer = as<LayerChoice>();
    return layer != nullptr ? layer->candidate->mode : implementation()->mode;
}

std::string Choice::describe() const {
    if (const auto* layer = as<LayerChoice>()) {
        return kernel->name + ": " + layer->candidate->layer;
    }
    const FunctionCandidate& one = *implementation();
    if (one.op.starts_with(program_namespace)) {
        return "a C++ function of this program";
    }
    const std::string name = one.op.empty() ? one.function : one.op;
    return kernel != nullptr ? kernel->name + ": " + name
           : one.op.empty()  ? one.file + ": " + name
                             : name;
}

bool binds(const MappedLayer& layer, const std::string& class_name) {
    return std::any_of(layer.classes.begin(), layer.classes.end(), [&](const std::string& pattern) {
        return base::glob_match(pattern, class_name);
    });
}

namespace {

tl::unexpected<KeepReason> refused(Fallback fallback, std::string because) {
    return tl::make_unexpected(KeepReason{fallback, std::move(because)});
}

// The index of the best of them for the context.
tl::expected<std::size_t, KeepReason> best(const std::string& name,
                                           const std::vector<Offer>& offers,
                                           const SelectionContext& context) {
    std::vector<const Offer*> here;
    std::set<std::string> devices;
    for (const Offer& offer : offers) {
        devices.insert(offer.device);
        if (serves_device(offer, context.device)) {
            here.push_back(&offer);
        }
    }
    if (here.empty()) {
        return refused(Fallback::no_device,
                       fmt::format("{} has no kernel for {}, only for {}", name, context.device,
                                   fmt::join(devices, ", ")));
    }
    std::erase_if(here,
                  [&](const auto* one) { return !serves_capability(*one, context.capability); });
    if (here.empty()) {
        return refused(Fallback::no_compatible_properties,
                       fmt::format("no capability range of {} contains this device", name));
    }
    std::stable_sort(here.begin(), here.end(),
                     [](const auto* a, const auto* b) { return range_size(*a) < range_size(*b); });
    std::erase_if(here,
                  [&](const auto* one) { return range_size(*one) != range_size(*here.front()); });

    std::string excluded;
    for (const std::string& mode : search_order(context.mode)) {
        for (const Offer* offer : here) {
            if (offer->mode != mode) {
                continue;
            }
            if (auto why = flags_exclude(*offer, context.mode)) {
                excluded = *why;
                continue;
            }
            return offer->index;
        }
    }
    return refused(Fallback::no_compatible_mode,
                   excluded.empty() ? fmt::format("{} is not registered for {}", name, context.mode)
                                    : excluded);
}

template <typename Candidate>
std::vector<Offer> offers_of(const std::vector<Candidate>& candidates) {
    std::vector<Offer> offers;
    for (const Candidate& one : candidates) {
        std::optional<std::pair<int, int>> capability;
        if constexpr (requires { one.capability; }) {
            capability = one.capability;
        }
        offers.push_back({one.device, capability, one.mode, one.has_backward, one.can_torch_compile,
                          offers.size()});
    }
    return offers;
}

tl::unexpected<KeepReason> no_build(const std::string& kernel, const SelectionContext& context) {
    return refused(Fallback::no_device,
                   fmt::format("the mapping has no build of {} for {}", kernel, context.device));
}

}  // namespace

tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedLayer& layer,
                                        const SelectionContext& context) {
    if (layer.candidates.empty()) {
        return refused(Fallback::no_layer,
                       why_nothing_is_mapped(mapping, "layer ", layer.kernel_name));
    }
    const auto index = best(layer.kernel_name, offers_of(layer.candidates), context);
    if (!index) {
        return tl::make_unexpected(index.error());
    }
    const LayerCandidate& candidate = layer.candidates[*index];
    const MappedKernel* kernel = kernel_of(mapping, candidate.kernel, context.device);
    if (kernel == nullptr) {
        return no_build(candidate.kernel, context);
    }
    return Choice{LayerChoice{&layer, &candidate}, kernel};
}

namespace {

struct FittingCandidate {
    const FunctionCandidate* candidate;
    const MappedKernel* kernel;
};

// Of a function or a pattern; `kind` is that of its decision.
tl::expected<FittingCandidate, KeepReason> fitting(const Mapping& mapping, const std::string& kind,
                                                   const std::string& name,
                                                   const std::vector<FunctionCandidate>& candidates,
                                                   const SelectionContext& context) {
    if (candidates.empty()) {
        return refused(Fallback::no_layer, why_nothing_is_mapped(mapping, kind, name));
    }
    const auto index = best(name, offers_of(candidates), context);
    if (!index) {
        return tl::make_unexpected(index.error());
    }
    const FunctionCandidate& candidate = candidates[*index];
    const MappedKernel* kernel = nullptr;
    if (!candidate.kernel.empty()) {
        kernel = kernel_of(mapping, candidate.kernel, context.device);
        if (kernel == nullptr) {
            return no_build(candidate.kernel, context);
        }
    }
    return FittingCandidate{&candidate, kernel};
}

}  // namespace

tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedFunction& function,
                                        const SelectionContext& context) {
    return fitting(mapping, "function ", function.full_name(), function.candidates, context)
        .map([&](const FittingCandidate& found) {
            return Choice{FunctionChoice{&function, found.candidate}, found.kernel};
        });
}

tl::expected<Choice, KeepReason> choose(const Mapping& mapping, const MappedPattern& pattern,
                                        const SelectionContext& context) {
    return fitting(mapping, "pattern ", pattern.name, pattern.candidates, context)
        .map([&](const FittingCandidate& found) {
            return Choice{PatternChoice{&pattern, found.candidate}, found.kernel};
        });
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
