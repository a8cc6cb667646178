#pragma once
// How the kernels of linear layers with packed weights and many rows of x are launched.

#include <algorithm>
#include <stdexcept>

#include "cuda/bits_strips.h"
#include "cuda/card.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

template <class Shape>
constexpr unsigned strip_shared_bytes(uint32_t cluster_bits) {
    return 2 * StripRows<Shape>::stage_bytes + StripInbox<Shape>::size(cluster_bits);
}

template <class Shape>
uint32_t row_tiles(const BitsArguments& a) {
    return static_cast<uint32_t>(quotient_up(a.tokens, Shape::rows));
}

// Of a block of one of so many clusters for the same rows, in the time in which four warps multiply
// a group; fitted to times on an H200.
template <class Shape>
uint64_t strip_time(const BitsArguments& a, uint64_t clusters, uint32_t cluster_bits) {
    constexpr uint64_t of_pass = 15, of_step = 3;
    const uint64_t blocks = a.outputs / block_outputs;
    const auto tiles =
        static_cast<uint32_t>(quotient_up(quotient_up(blocks, std::min(blocks, clusters)), 2));
    const uint64_t groups =
        quotient_up(a.row_bytes / Shape::Weights::bytes_of_group, uint64_t{1} << cluster_bits);
    uint64_t time = of_step * cluster_bits;
    for (uint32_t tile = 0; tile < tiles;) {
        const StripPass pass = StripPass::of<Shape>(tile, tiles);
        time += quotient_up(groups, pass.parts) * (pass.width * pass.parts / 4) + of_pass;
        tile += pass.tiles;
    }
    return time;
}

// In clusters of so many blocks, given by the bits of a power of two.
template <class T, class Shape>
void launch_strips_in(uint32_t cluster_bits, BitsArguments a, const Card& card, void* stream) {
    void (*const kernel)(BitsArguments) = bits_strips<T, Shape>;
    const unsigned cluster = 1u << cluster_bits, shared = strip_shared_bytes<Shape>(cluster_bits);
    uint64_t clusters = card.multiprocessors;
    if (cluster > 1)  // whose blocks must lie near each other
        clusters =
            static_cast<uint64_t>(clusters_at_once(card, kernel, Shape::threads, shared, cluster));
    a.row_tiles = row_tiles<Shape>(a);
    // Where they cannot run at once, they follow one another.
    clusters = std::max<uint64_t>(clusters / a.row_tiles, clusters > 0 ? 1 : 0);
    if (clusters == 0) throw std::logic_error("twinkle-pack: no such clusters on this GPU");
    a.clusters = static_cast<uint32_t>(std::min<uint64_t>(clusters, a.outputs / block_outputs));
    a.cluster_bits = cluster_bits;
    a.early_groups = card.early ? 8 : 0;
    launch_early(stream, card, kernel,
                 {uint64_t{a.clusters} * a.row_tiles << cluster_bits, 1, shared}, Shape::threads,
                 cluster, a);
}

template <class T, class Shape>
void launch_strips_of(const BitsArguments& a, const Card& card, void* stream) {
    const uint32_t groups = a.row_bytes / Shape::Weights::bytes_of_group;
    uint32_t best = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t bits = 0; bits <= 3 && 1u << bits <= card.cluster_blocks; ++bits) {
        const uint64_t clusters = (card.multiprocessors >> bits) / row_tiles<Shape>(a);
        if (clusters == 0 || groups >> bits == 0) break;
        const uint64_t time = strip_time<Shape>(a, clusters, bits);
        if (time < least) least = time, best = bits;
    }
    launch_strips_in<T, Shape>(best, a, card, stream);
}

}  // namespace
}  // namespace twinkle_pack::cuda
