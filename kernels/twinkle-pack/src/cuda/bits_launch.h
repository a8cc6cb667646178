#pragma once
// How the kernels of linear layers with packed weights are launched: as many clusters of blocks as
// run at once.

#include <algorithm>
#include <stdexcept>

#include "cuda/bits_supply.h"
#include "cuda/bits_tiles.h"
#include "cuda/card.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

// Whether the copy engine brings weights (bits_supply.h), else lanes read them (bits_tiles.h).
template <class Shape>
constexpr bool is_supplied = requires { Shape::stages; };

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
    // To compare, in the time in which a multiprocessor reads 1 KiB: what it reads; what its warps
    // then do, of which the slowest counts, if the next is not read meanwhile; and what twice as
    // large a cluster costs (fitted to times on an H200).
    template <class Shape>
    uint64_t time(uint32_t cluster_bits) const {
        constexpr uint64_t of_group = tile_outputs * Shape::Weights::bytes_of_group >> 10;
        constexpr uint64_t of_step = is_supplied<Shape>    ? 8
                                     : has_few_rows<Shape> ? 16 * std::min(of_group, uint64_t{2})
                                                           : 5 * of_group;
        const uint64_t steps =
            is_supplied<Shape> ? 0 : quotient_up(tiles * groups, Shape::warps) * Shape::warps;
        return (blocks * groups / 2 + steps) * of_group + of_step * cluster_bits;
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

template <class T, class Shape>
constexpr auto bits_kernel() {
    if constexpr (is_supplied<Shape>)
        return bits_supplied<T, Shape>;
    else
        return bits_tiles<T, Shape>;
}
// Of x, in shared memory.
template <class T, class Shape>
uint32_t factor_bytes(const BitsArguments& a) {
    if constexpr (is_supplied<Shape>)
        return static_cast<uint32_t>(BitsFactors<T, Shape>::bytes(
            BitsBurden::of<Shape>(a, 1, a.cluster_bits).groups, a.tokens));
    return 0;
}
constexpr uint64_t most_factor_bytes = 96 << 10;
constexpr int64_t most_supplied_depth(int64_t rows) {
    return static_cast<int64_t>(most_factor_bytes) / (128 * rows + 64) * 64;
}
// What blocks have in shared memory beside sums: weights under way, and x.
template <class Shape>
uint64_t supply_bytes(const BitsArguments& a) {
    if constexpr (is_supplied<Shape>) return Shape::ring_bytes + a.factor_bytes;
    return 0;
}
template <class Shape>
constexpr uint64_t most_supply_bytes = 0;
template <class Shape>
    requires is_supplied<Shape>
constexpr uint64_t most_supply_bytes<Shape> = Shape::ring_bytes + most_factor_bytes;

// What each warp reads first is brought to the cache while an earlier kernel ends.
template <class Shape>
uint32_t early_groups(const Card& card) {
    constexpr uint32_t of_group = tile_outputs * Shape::Weights::bytes_of_group;
    constexpr uint32_t groups = has_few_rows<Shape> ? (4 << 10) / of_group : 4;
    return card.early ? groups : 0;
}

// Of one block, for sums.
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
    // One tile fits in any case, beside an inbox for it.
    constexpr uint64_t tokens = Shape::across * 8, inbox = tokens * vectors_of_tile + 8;
    static_assert(slots_size(Shape::warps, 1, tokens) * sizeof(float) + inbox * sizeof(Four) +
                      most_supply_bytes<Shape> <=
                  most_shared);
    void (*const kernel)(BitsArguments) = bits_kernel<T, Shape>();
    const unsigned cluster = 1u << cluster_bits;
    a.cluster_bits = cluster_bits;
    a.early_groups = early_groups<Shape>(card);
    a.factor_bytes = factor_bytes<T, Shape>(a);
    uint64_t clusters = uint64_t{card.multiprocessors} * Shape::resident / cluster;
    const auto shared = [&] {
        return supply_bytes<Shape>(a) + bits_shared_bytes<Shape>(a, clusters);
    };
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
