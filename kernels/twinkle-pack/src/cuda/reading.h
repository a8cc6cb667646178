#pragma once
// How long what a kernel reads stays in the L2 cache.

#include <type_traits>

#include "cuda/card.h"

namespace twinkle_pack::cuda {
namespace {

enum class Reading {
    cached,  // as long as anything else
    once,    // leaves first: results stay there for the kernel that reads them
};

// Once where results fill a good part of the cache, and no more than it has: on an H200 a kernel
// and the next that reads its results take up to 10 % less time together. Else cached: fewer
// results leave room, what is read may be wanted again; more do not stay, and the kernel takes 2 to
// 5 % less time.
inline Reading reading_beside(uint64_t result_bytes, const Card& card) {
    const uint64_t quarter = uint64_t{card.cache_mib} << 18;
    return result_bytes >= quarter && result_bytes < 3 * quarter ? Reading::once : Reading::cached;
}

// Calls f with it as a constant. Not `both`: what f does never has so many results.
template <bool both, class F>
void with_reading(Reading reading, const F& f) {
    if constexpr (both)
        if (reading == Reading::once) return f(std::integral_constant<Reading, Reading::once>());
    f(std::integral_constant<Reading, Reading::cached>());
}

}  // namespace
}  // namespace twinkle_pack::cuda
