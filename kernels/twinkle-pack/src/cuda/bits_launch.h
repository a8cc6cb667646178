#pragma once
// How the kernels of linear layers with packed weights are launched: as many clusters of blocks as
// run at once.

#include <algorithm>
#include <stdexcept>

#include "cuda/bits_tiles.h"
#include "cuda/card.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

// Of a block of one of so many clusters: the outputs, in tiles, and the groups, at most.
struct BitsBurden {
    uint64_t blocks, tiles, groups;  // blocks of outputs

    template <class Shape>
    static BitsBurden of(const BitsArguments& a, uint64_t clusters, uint32_t cluster_bits) {
        const uint64_t all = a.outputs / block_outputs, cluster = uint64_t{1} << cluster_bits;
        const uint64_t blocks = quotient_up(all, std::min(all, clusters));
        return {blocks, quotient_up(blocks, 2),
                quotient_up(a.row_bytes / Shape::Weights::bytes_of_group, cluster)};
    }
    // In no unit, to compare: what it reads, and what its warps then do, of which the slowest
    // counts; twice as large a cluster costs as much as some groups (fitted to times on an H200).
    template <class Shape>
    uint64_t time(uint32_t cluster_bits) const {
        constexpr uint64_t of_step = 5;
        return blocks * groups / 2 + quotient_up(tiles * groups, Shape::warps) * Shape::warps +
               of_step * cluster_bits;
    }
};

template <class Shape>
uint32_t best_cluster_bits(const BitsArguments& a, const Card& card) {
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t bits = 0; bits <= 3 && 1u << bits <= card.cluster_blocks; ++bits) {
        const uint64_t clusters = uint64_t{card.multiprocessors} * Shape::resident >> bits;
        if (clusters == 0) break;
        const uint64_t time = BitsBurden::of<Shape>(a, clusters, bits).template time<Shape>(bits);
        if (time < least) least = time, best = bits;
    }
    return best;
}

// Of one block.
template <class Shape>
uint64_t bits_shared_bytes(const BitsArguments& a, uint64_t clusters) {
    const uint64_t tiles = BitsBurden::of<Shape>(a, clusters, a.cluster_bits).tiles;
    const uint64_t vectors = tiles * a.tokens * vectors_of_tile;
    const uint64_t inbox = a.cluster_bits == 0
                               ? 0
                               : uint64_t{part_of(static_cast<uint32_t>(vectors), a.cluster_bits)}
                                     << a.cluster_bits;
    return slots_size(Shape::warps, tiles, a.tokens) * sizeof(float) + inbox * sizeof(Four);
}

// In clusters of so many blocks, given by the bits of a power of two.
template <class T, class Shape>
void launch_bits_in(uint32_t cluster_bits, BitsArguments a, const Card& card, void* stream) {
    constexpr uint64_t most_shared = (220 << 10) / Shape::resident;
    constexpr uint32_t early_groups = 4;
    // One tile fits in any case, beside an inbox for it.
    constexpr uint64_t tokens = Shape::across * 8, inbox = tokens * vectors_of_tile + 8;
    static_assert(slots_size(Shape::warps, 1, tokens) * sizeof(float) + inbox * sizeof(Four) <=
                  most_shared);
    void (*const kernel)(BitsArguments) = bits_tiles<T, Shape>;
    const unsigned cluster = 1u << cluster_bits;
    a.cluster_bits = cluster_bits;
    a.early_groups = card.early ? early_groups : 0;
    uint64_t clusters = uint64_t{card.multiprocessors} * Shape::resident / cluster;
    const auto shared = [&] { return bits_shared_bytes<Shape>(a, clusters); };
    if (cluster > 1 && clusters > 0)  // whose blocks must lie near each other
        clusters = std::min<uint64_t>(
            clusters, static_cast<uint64_t>(clusters_at_once(
                          card, kernel, Shape::threads,
                          static_cast<unsigned>(std::min(shared(), most_shared)), cluster)));
    if (clusters == 0) throw std::logic_error("twinkle-pack: no such clusters on this GPU");
    // Where a block would have too many outputs for its sums, more follow.
    for (const uint64_t at_once = clusters; shared() > most_shared;) clusters += at_once;
    clusters = std::min<uint64_t>(clusters, a.outputs / block_outputs);
    a.clusters = static_cast<uint32_t>(clusters);
    launch_early(stream, card, kernel, {clusters * cluster, 1, static_cast<unsigned>(shared())},
                 Shape::threads, cluster, a);
}

template <class T, class Shape>
void launch_bits(const BitsArguments& a, const Card& card, void* stream) {
    launch_bits_in<T, Shape>(best_cluster_bits<Shape>(a, card), a, card, stream);
}

}  // namespace
}  // namespace twinkle_pack::cuda
