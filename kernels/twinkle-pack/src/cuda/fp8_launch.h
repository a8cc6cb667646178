#pragma once
// How products of rows and weights in fp8 are launched.

#include "cuda/card.h"
#include "cuda/fp8_products.h"

namespace twinkle_pack::cuda {
namespace {

// In clusters of so many blocks, given by the bits of a power of two.
template <class Shape>
void launch_fp8_in(uint32_t cluster_bits, Fp8Arguments a, const Card& card, void* stream) {
    a.cluster_bits = cluster_bits;
    a.row_tiles = static_cast<uint32_t>(quotient_up(a.rows, Shape::rows));
    a.early = card.early;
    const uint64_t clusters = quotient_up(a.outputs, Shape::outputs) * a.row_tiles;
    launch_early(stream, card, fp8_products<Shape>, {clusters << cluster_bits, 1, Shape::bytes},
                 Shape::threads, 1u << cluster_bits, a);
}

}  // namespace
}  // namespace twinkle_pack::cuda
