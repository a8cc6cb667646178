#pragma once
// How products with packed weights are launched.

#include "cuda/bits_products.h"
#include "cuda/cluster_room.h"

namespace twinkle_pack::cuda {
namespace {

// In clusters of so many blocks, given by the bits of a power of two.
template <class T, class Shape>
void launch_products_in(uint32_t cluster_bits, BitsArguments a, const Card& card, void* stream) {
    a.cluster_bits = cluster_bits;
    a.row_tiles = static_cast<uint32_t>(quotient_up(a.tokens, Shape::rows));
    a.early_groups = card.early ? 1 : 0;
    const uint64_t clusters = quotient_up(a.outputs, Shape::outputs) * a.row_tiles;
    launch_early(stream, card, bits_products<T, Shape>, {clusters << cluster_bits, 1, Shape::bytes},
                 Shape::threads, 1u << cluster_bits, a);
}

// In nanoseconds, fitted to times on an H200: of all blocks that follow one another on a
// multiprocessor.
template <class Shape>
uint64_t product_time(const BitsArguments& a, const Card& card, uint32_t cluster_bits) {
    using W = typename Shape::Weights;
    constexpr uint64_t of_team = 65 + 5 * Shape::across + (W::loads > 2 ? 31 : 0);
    constexpr uint64_t of_group =
        25 + (Shape::groups == 1 ? 41 : 0) + 6 * Shape::across + Shape::teams * of_team;
    const uint64_t clusters =
        quotient_up(a.outputs, Shape::outputs) * quotient_up(a.tokens, Shape::rows);
    const uint64_t groups =
        quotient_up(a.row_bytes / W::bytes_of_group, uint64_t{1} << cluster_bits);
    uint64_t time = quotient_up(groups, Shape::groups) * Shape::groups * of_group + 1740;
    if (cluster_bits > 0) time += 76 * Shape::across * Shape::teams + 490 * cluster_bits;
    return quotient_up(clusters, clusters_with_room(card, cluster_bits)) * time;
}

struct ProductWay {
    void (*launch)(uint32_t cluster_bits, BitsArguments a, const Card& card, void* stream);
    uint32_t cluster_bits;
    uint64_t time;
};

template <class T, class Shape>
void take_faster(const BitsArguments& a, const Card& card, ProductWay& best) {
    for (uint32_t bits = 0; bits <= 3 && 1u << bits <= card.cluster_blocks; ++bits) {
        if (a.row_bytes / Shape::Weights::bytes_of_group >> bits == 0) break;
        const uint64_t time = product_time<Shape>(a, card, bits);
        if (time < best.time) best = {launch_products_in<T, Shape>, bits, time};
    }
}

// With few rows a step of one group is too short; with many, there is no room for two in time.
template <class T, class W>
void launch_products(const BitsArguments& a, const Card& card, void* stream) {
    ProductWay best{nullptr, 0, UINT64_MAX};
    take_faster<T, ProductShape<W, 8, 2, 2>>(a, card, best);
    take_faster<T, ProductShape<W, 8, 3, 2>>(a, card, best);
    take_faster<T, ProductShape<W, 16, 2, 2>>(a, card, best);
    take_faster<T, ProductShape<W, 16, 3, 2>>(a, card, best);
    take_faster<T, ProductShape<W, 24, 2, 1>>(a, card, best);
    take_faster<T, ProductShape<W, 24, 3, 1>>(a, card, best);
    take_faster<T, ProductShape<W, 32, 2, 1>>(a, card, best);
    best.launch(best.cluster_bits, a, card, stream);
}

}  // namespace
}  // namespace twinkle_pack::cuda
