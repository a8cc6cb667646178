#pragma once
// How a linear layer with packed weights and many rows of x is divided among clusters, blocks and
// warps (bits_strips.h).

#include "cuda/bits_shape.h"

namespace twinkle_pack::cuda {
namespace {

// Up to `across` times 8 rows of x at a time, of which `stage` groups of 64 along the depth are
// copied to shared memory at once.
template <class W, int across_, int warps_, int stage_>
struct StripShape {
    using Weights = W;
    static constexpr unsigned across = across_, stage = stage_, rows = across * 8;
    static constexpr unsigned warps = warps_, threads = warps * 32, teams = warps / 4;
    static_assert(stage % teams == 0 && warps % 4 == 0 && across % 8 == 0);
};

// Tiles of 32 outputs that a block computes at once, one by each warp. Four warps multiply together
// (wgmma.h); if there are no more tiles, each four take every so many-th group of the same.
struct StripPass {
    uint32_t first_tile, tiles, width, parts;

    template <class Shape>
    static __device__ __host__ __forceinline__ StripPass of(uint32_t first_tile, uint32_t all) {
        const uint32_t left = all - first_tile;
        const uint32_t width = left <= 4 ? 4 : left <= 8 ? 8 : Shape::warps;
        return {first_tile, left < width ? left : width, width, left <= 4 ? Shape::teams : 1};
    }
};

// A cluster has outputs and rows of its own; its blocks share the groups.
template <class Shape>
struct StripShare {
    uint32_t first_output, end_output, tiles;
    uint32_t first_group, groups;
    uint32_t first_row, rows;

    __device__ __forceinline__ StripShare(const BitsArguments& a, unsigned rank) {
        const uint32_t cluster = blockIdx.x >> a.cluster_bits, blocks = a.outputs / block_outputs;
        const uint32_t strip = cluster % a.clusters, row_tile = cluster / a.clusters;
        const uint32_t each = blocks / a.clusters, more = blocks % a.clusters;
        first_output = (strip * each + (strip < more ? strip : more)) * block_outputs;
        end_output = first_output + (each + (strip < more ? 1 : 0)) * block_outputs;
        tiles = (end_output - first_output + tile_outputs - 1) / tile_outputs;
        const uint32_t all = a.row_bytes / Shape::Weights::bytes_of_group;
        first_group = all * rank >> a.cluster_bits;
        groups = (all * (rank + 1) >> a.cluster_bits) - first_group;
        first_row = a.tokens * row_tile / a.row_tiles;
        rows = a.tokens * (row_tile + 1) / a.row_tiles - first_row;
    }

    __device__ __forceinline__ uint32_t outputs_of(uint32_t tile) const {
        const uint32_t left = end_output - first_output - tile * tile_outputs;
        return left < tile_outputs ? left : tile_outputs;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
