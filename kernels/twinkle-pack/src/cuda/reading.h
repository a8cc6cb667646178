#pragma once
// How long data that a kernel reads stays in the L2 cache.

#include <type_traits>

#include "cuda/card.h"

namespace twinkle_pack::cuda {
namespace {

enum class Reading {
    cached,  // as long as anything else
    once,    // leaves first: results stay there for the kernel that reads them
};

// `once`, unless more results are written than the cache keeps: then `cached` takes 2 to 5 % less
// time on an H200, while results that would stay cost a kernel with `cached`, and the next that
// reads them, up to 8 % more. Few results leave room for all: both take the same time.
inline Reading reading_beside(uint64_t result_bytes, const Card& card) {
    const uint64_t cache = uint64_t{card.cache_mib} << 20;
    return result_bytes >= cache / 64 && result_bytes < cache / 4 * 3 ? Reading::once
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
