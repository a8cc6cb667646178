#include "runtime/selection/candidates.h"

#include "runtime/graph/format.h"
#include "runtime/selection/modes.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace twinkle::runtime {

namespace {

// The properties of a candidate that decide.
struct Offer {
    std::string device;
    std::optional<std::pair<int, int>> capability;
    std::string mode;
    bool has_backward = true;
    bool can_torch_compile = false;
    std::string precision{};
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

// The check at which a candidate was refused, in order.
enum class Stage { device, capability, range, mode, flags, precision, serves };

struct Judged {
    Stage stage = Stage::serves;
    std::size_t rank = 0;  // of its mode in the search order
    std::string refused;   // why it cannot serve; empty: it can
};

Judged judged(const Offer& offer, const SelectionContext& context,
              const std::vector<std::string>& modes, long narrowest) {
    if (!serves_device(offer, context.device)) {
        return {Stage::device, 0, "it is for " + offer.device};
    }
    if (!serves_capability(offer, context.capability)) {
        return {Stage::capability, 0, "its capability range does not contain this device"};
    }
    if (range_size(offer) != narrowest) {
        return {Stage::range, 0, "a narrower capability range contains this device"};
    }
    const auto mode = std::find(modes.begin(), modes.end(), offer.mode);
    const auto rank = static_cast<std::size_t>(mode - modes.begin());
    if (mode == modes.end()) {
        return {Stage::mode, rank, "it is registered for " + offer.mode};
    }
    if (auto why = flags_exclude(offer, context.mode)) {
        return {Stage::flags, rank, *std::move(why)};
    }
    if (!offer.precision.empty() && !context.precisions.contains(offer.precision)) {
        return {Stage::precision, rank,
                "it computes in " + offer.precision + ", which was not asked for"};
    }
    return {Stage::serves, rank, ""};
}

// Among those that compute in the same precision: an exact one does not give way to a coarser one.
long narrowest_range(const std::vector<Offer>& offers, const std::string& precision,
                     const SelectionContext& context) {
    long narrowest = std::numeric_limits<long>::max();
    for (const Offer& offer : offers) {
        if (offer.precision == precision && serves_device(offer, context.device) &&
            serves_capability(offer, context.capability)) {
            narrowest = std::min(narrowest, range_size(offer));
        }
    }
    return narrowest;
}

// Why none of them serves: the reason of the one that passed the most checks.
KeepReason why_none(const std::string& name, const std::vector<Offer>& offers,
                    const std::vector<Judged>& all, const SelectionContext& context) {
    const Judged* farthest = &all.front();
    for (const Judged& one : all) {  // if flags exclude several, the least preferred
        if (std::pair(one.stage, one.rank) >= std::pair(farthest->stage, farthest->rank)) {
            farthest = &one;
        }
    }
    if (farthest->stage == Stage::device) {
        std::set<std::string> devices;
        for (const Offer& offer : offers) {
            devices.insert(offer.device);
        }
        return {Fallback::no_device, fmt::format("{} has no kernel for {}, only for {}", name,
                                                 context.device, fmt::join(devices, ", "))};
    }
    if (farthest->stage == Stage::capability) {
        return {Fallback::no_compatible_properties,
                fmt::format("no capability range of {} contains this device", name)};
    }
    return {Fallback::no_compatible_mode,
            farthest->stage >= Stage::flags
                ? farthest->refused
                : fmt::format("{} is not registered for {}", name, context.mode)};
}

template <typename Offered>
std::vector<Offer> offers_of(const std::vector<Offered>& candidates) {
    std::vector<Offer> offers;
    for (const Offered& one : candidates) {
        std::optional<std::pair<int, int>> capability;
        if constexpr (requires { one.capability; }) {
            capability = one.capability;
        }
        std::string precision;
        if constexpr (requires { one.precision; }) {
            precision = one.precision;
        }
        offers.push_back({one.device, capability, one.mode, one.has_backward, one.can_torch_compile,
                          std::move(precision)});
    }
    return offers;
}

// Candidates for the binding `name`; `kind` is that of its decision in the mapping.
template <typename ChoiceOf, typename Binding>
Candidates candidates_of(const Mapping& mapping, const std::string& kind, const std::string& name,
                         const Binding& binding, const SelectionContext& context) {
    if (binding.candidates.empty()) {
        return {{}, {Fallback::no_layer, why_nothing_is_mapped(mapping, kind, name)}};
    }
    const auto offers = offers_of(binding.candidates);
    const auto modes = search_order(context.mode);
    std::vector<Judged> all;
    // Exact ones come first, whatever else is said.
    std::vector<std::pair<Candidate, std::tuple<bool, Stage, std::size_t>>> ranked;
    std::optional<KeepReason> no_build;
    for (std::size_t i = 0; i < offers.size(); ++i) {
        const auto& candidate = binding.candidates[i];
        Judged verdict = judged(offers[i], context, modes,
                                narrowest_range(offers, offers[i].precision, context));
        const std::string& device =
            verdict.stage == Stage::device ? offers[i].device : context.device;
        const MappedKernel* kernel = kernel_of(mapping, candidate.kernel, device);
        all.push_back(verdict);
        if (verdict.refused.empty() && kernel == nullptr && !candidate.kernel.empty()) {
            verdict.refused = fmt::format("the mapping has no build of {} for {}", candidate.kernel,
                                          context.device);
            no_build = KeepReason{Fallback::no_device, verdict.refused};
        }
        ranked.push_back({{{ChoiceOf{&binding, &candidate}, kernel}, std::move(verdict.refused)},
                          {!offers[i].precision.empty(), verdict.stage, verdict.rank}});
    }
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& one, const auto& other) {
        const bool serves = one.first.serves();
        return serves != other.first.serves() ? serves : serves && one.second < other.second;
    });
    Candidates found;
    for (auto& [candidate, rank] : ranked) {
        found.all.push_back(std::move(candidate));
    }
    if (!found.all.front().serves()) {
        found.reason = no_build ? *no_build : why_none(name, offers, all, context);
    }
    return found;
}

}  // namespace

tl::expected<Choice, KeepReason> Candidates::first() const {
    if (all.empty() || !all.front().serves()) {
        return tl::make_unexpected(reason);
    }
    return all.front().choice;
}

void Candidates::add(Candidates others) {
    reason = std::move(others.reason);
    all.insert(all.end(), std::make_move_iterator(others.all.begin()),
               std::make_move_iterator(others.all.end()));
    std::stable_partition(all.begin(), all.end(), [](const auto& one) { return one.serves(); });
}

Candidates candidates_for(const Mapping& mapping, const MappedLayer& layer,
                          const SelectionContext& context) {
    return candidates_of<LayerChoice>(mapping, "layer ", layer.kernel_name, layer, context);
}

Candidates candidates_for(const Mapping& mapping, const MappedFunction& function,
                          const SelectionContext& context) {
    return candidates_of<FunctionChoice>(mapping, "function ", function.full_name(), function,
                                         context);
}

Candidates candidates_for(const Mapping& mapping, const MappedPattern& pattern,
                          const SelectionContext& context) {
    return candidates_of<PatternChoice>(mapping, "pattern ", pattern.name, pattern, context);
}

}  // namespace twinkle::runtime
