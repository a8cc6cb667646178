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

// Once, but where more results are written than stay: there a kernel takes 2 to 5 % less time on an
// H200, while results that would have stayed cost a kernel and the next that reads them up to 8 %
// more. Few results leave room for all: there both take as long.
inline Reading reading_beside(uint64_t result_bytes, const Card& card) {
    const uint64_t cache = uint64_t{card.cache_mib} << 20;
    return result_bytes >= cache / 64 && result_bytes < cache / 4 * 3 ? Reading::once
                                                                      : Reading::cached;
}

// Calls f with it as a constant. Not `both`: kernels whose results are always few, or whose loads
// are too narrow to say; they are compiled for cached alone.
template <bool both, class F>
void with_reading(Reading reading, const F& f) {
    if constexpr (both)
        if (reading == Reading::once) return f(std::integral_constant<Reading, Reading::once>());
    f(std::integral_constant<Reading, Reading::cached>());
}

}  // namespace
}  // namespace twinkle_pack::cuda
