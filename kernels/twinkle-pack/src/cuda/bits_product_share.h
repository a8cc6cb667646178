#pragma once
// How a linear layer with packed weights and many rows of x is divided among clusters, blocks and
// warps (bits_products.h).

#include <algorithm>

#include "cuda/bits_shape.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

// Of a block: so many teams of four warps, each with 64 outputs, by up to `across` times 8 rows,
// and four warps that bring them some groups of 64 terms of each at a time, to one of the stages.
template <class W, int across_, int teams_, int groups_ = 2>
struct ProductShape {
    using Weights = W;
    static constexpr unsigned across = across_, rows = across * 8;
    static constexpr unsigned teams = teams_, warps = 4 * teams;
    static constexpr unsigned readers = 32 * warps, suppliers = 128;
    static constexpr unsigned threads = readers + suppliers;
    // Of a thread of either, together what threads of one kind would have, in steps of 8.
    static constexpr unsigned registers = teams == 2 ? 232 : 160;
    static constexpr unsigned supplier_registers = teams == 2 ? 40 : 32;
    static_assert(teams == 2 || teams == 3);
    static constexpr unsigned outputs = 64 * teams, blocks = outputs / block_outputs;
    static constexpr unsigned groups = groups_;
    static constexpr unsigned row_bytes = 128;  // of a row's terms of a group
    static constexpr unsigned scales_step = block_outputs * sizeof(float);  // of a block's group
    static constexpr unsigned weights_at = groups * rows * row_bytes;
    static constexpr unsigned scales_at = weights_at + groups * blocks * W::step;
    // wgmma.h wants rows at multiples of 1 KiB.
    static constexpr unsigned stage_bytes =
        (scales_at + groups * blocks * scales_step + 1023) / 1024 * 1024;
    static constexpr unsigned stages = std::min(8u, (208u << 10) / stage_bytes);
    static constexpr unsigned bytes = stages * stage_bytes;
};

// A cluster has rows and outputs of its own, its blocks share the groups.
template <class Shape>
struct ProductShare {
    uint32_t first_row, rows, first_output, blocks;  // of outputs
    uint32_t first_group, groups, steps;

    __device__ __forceinline__ ProductShare(const BitsArguments& a, unsigned rank) {
        const uint32_t cluster = blockIdx.x >> a.cluster_bits;
        const uint32_t row_tile = cluster % a.row_tiles, tile = cluster / a.row_tiles;
        first_row = a.tokens * row_tile / a.row_tiles;
        rows = a.tokens * (row_tile + 1) / a.row_tiles - first_row;
        first_output = tile * Shape::outputs;
        const uint32_t left = (a.outputs - first_output) / block_outputs;
        blocks = left < Shape::blocks ? left : Shape::blocks;
        const uint32_t all = a.row_bytes / Shape::Weights::bytes_of_group;
        first_group = all * rank >> a.cluster_bits;
        groups = (all * (rank + 1) >> a.cluster_bits) - first_group;
        steps = (groups + Shape::groups - 1) / Shape::groups;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
