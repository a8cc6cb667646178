#pragma once
// How many clusters find room on a GPU at once, as kernels are divided by.

#include <cstdint>

#include "cuda/launching.h"

namespace twinkle_pack::cuda {
namespace {

// Of 1 << bits blocks, each of which takes a multiprocessor. Clusters of four and more do not find
// room on all of them: they do not cross the borders of groups of multiprocessors.
inline uint64_t clusters_with_room(const Card& card, uint32_t bits) {
    const uint64_t all = card.multiprocessors >> bits;
    if (bits > 1 && all > 2) return all - 2;
    return all > 0 ? all : 1;
}

}  // namespace
}  // namespace twinkle_pack::cuda
