#include "runtime/plan/inlined_binding.h"

#include <algorithm>

namespace twinkle::runtime {

tl::expected<CallBinding, KeepReason> binding_for(const Site& site, const Choice& choice) {
    const auto& bindings = site.as<InlinedCallSite>()->bindings;
    CallBinding binding = bindings.at(choice.id());
    for (const Choice& other : site.choices()) {
        const auto& given = bindings.at(other.id()).results;
        for (std::size_t i = 0; i < binding.results.size(); ++i) {
            if (!given.at(i)) {
                binding.results[i].reset();
            }
        }
    }
    if (std::none_of(binding.results.begin(), binding.results.end(),
                     [](const auto& result) { return result.has_value(); })) {
        return tl::make_unexpected(
            KeepReason{Fallback::cannot_compile,
                       "a trace has inlined it, and its candidates give different results"});
    }
    return binding;
}

InlinedPlace place_given_by(const InlinedCallSite& site, const CallBinding& binding) {
    InlinedPlace place = site.place;
    place.given = 0;
    for (std::size_t i = 0; i < binding.results.size() && i < most_inlined_results; ++i) {
        place.given |= binding.results[i] ? std::uint64_t{1} << i : 0;
    }
    return place;
}

}  // namespace twinkle::runtime
