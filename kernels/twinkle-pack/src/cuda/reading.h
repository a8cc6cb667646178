#pragma once
// How long data that a kernel reads stays in the L2 cache.

#include <type_traits>

#include "cuda/card.h"
#include "rules.h"

namespace twinkle_pack::cuda {
namespace {

enum class Reading {
    cached,  // as long as anything else
    once,    // leaves first: results stay there for the kernel that reads them
};

// As the call says, else by the rule.
inline Reading reading_beside(uint64_t result_bytes, const Card& card, const Config& config) {
    if (config.reading == 1 || config.reading == 2) return static_cast<Reading>(config.reading - 1);
    const uint64_t cache = uint64_t{card.cache_mib} << 20;
    return result_bytes >= rules::once_from(cache) && result_bytes < rules::once_below(cache)
               ? Reading::once
               : Reading::cached;
}

// Calls f with it as a constant. Without `both` only `cached` is compiled: for kernels whose
// results are always few, or whose loads are too narrow for hints.
template <bool both, class F>
void with_reading(Reading reading, const F& f) {
    if constexpr (both)
        if (reading == Reading::once) return f(std::integral_constant<Reading, Reading::once>());
    f(std::integral_constant<Reading, Reading::cached>());
}

}  // namespace
}  // namespace twinkle_pack::cuda
