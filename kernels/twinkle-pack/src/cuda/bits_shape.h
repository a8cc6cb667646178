#pragma once
// How a linear layer with packed weights is divided among clusters, blocks and warps
// (bits_tiles.h).

#include "cuda/bits_linear.h"
#include "cuda/platform.h"

namespace twinkle_pack::cuda {
namespace {

struct BitsArguments {
    const char *x, *weight;
    const float* scales;
    const void* bias;
    void* y;
    uint32_t tokens, outputs;
    uint32_t row_bytes;     // of an output's values
    uint32_t scale_groups;  // that have scales of their own; 0: each output has one
    uint32_t clusters;
    uint32_t cluster_bits;  // of the blocks in a cluster, a power of two
    uint32_t early_groups;  // that a warp brings to the cache before earlier kernels end
    uint32_t factor_bytes;  // of x in shared memory (bits_supply.h)
    uint32_t row_tiles;     // in which clusters share the rows of x (bits_strips.h)

    static BitsArguments of(const PackedLayer& layer) {
        const int64_t row_bytes = layer.packing == Packing::int4 ? layer.depth / 2 : layer.depth;
        BitsArguments a{};
        a.x = static_cast<const char*>(layer.x);
        a.weight = static_cast<const char*>(layer.values);
        a.scales = static_cast<const float*>(layer.scales);
        a.bias = layer.bias;
        a.y = layer.y;
        a.tokens = static_cast<uint32_t>(layer.rows);
        a.outputs = static_cast<uint32_t>(layer.outputs);
        a.row_bytes = static_cast<uint32_t>(row_bytes);
        a.scale_groups =
            layer.packing == Packing::fp8 ? 0 : static_cast<uint32_t>(layer.depth / 64);
        return a;
    }
};

// Tiles of 32 outputs by `across` times 8 tokens; of each, groups along the depth (bits_weights.h),
// of which a warp reads `ahead` ahead. A multiprocessor holds `resident` blocks at once.
template <class W, int across_, int warps_, int ahead_, int resident_>
struct BitsShape {
    using Weights = W;
    static constexpr unsigned across = across_, warps = warps_, ahead = ahead_;
    static constexpr unsigned resident = resident_;
    static constexpr unsigned threads = warps * 32;
};

constexpr uint32_t block_outputs = 16, tile_outputs = 2 * block_outputs;  // of weights, of tiles

// Of a warp: so many groups, from this one of that tile on.
struct BitsPath {
    uint32_t tile, group, count;
};

// Then the last warps are those without groups if there are fewer than warps, so that a tile's sums
// are of warps that follow one another (bits_few_sums.h).
template <class Shape>
constexpr bool has_few_rows = Shape::across <= 2;

// A cluster has outputs of its own, its blocks share the groups, and of a block's groups of all its
// tiles, taken one after the other, each warp has as many as any other, or one more. 32 bits count
// them all: see serves() in bits_linear.cu.
template <class Shape>
struct BitsShare {
    uint32_t first_output, end_output, tiles;
    uint32_t first_group, groups;

    __device__ __forceinline__ BitsShare(const BitsArguments& a, unsigned rank) {
        const uint32_t cluster = blockIdx.x >> a.cluster_bits, blocks = a.outputs / block_outputs;
        const uint32_t each = blocks / a.clusters, more = blocks % a.clusters;
        first_output = (cluster * each + (cluster < more ? cluster : more)) * block_outputs;
        end_output = first_output + (each + (cluster < more ? 1 : 0)) * block_outputs;
        tiles = (end_output - first_output + tile_outputs - 1) / tile_outputs;
        const uint32_t all = a.row_bytes / Shape::Weights::bytes_of_group;
        first_group = all * rank >> a.cluster_bits;
        groups = (all * (rank + 1) >> a.cluster_bits) - first_group;
    }

    __device__ __forceinline__ BitsPath path(unsigned warp) const {
        const uint32_t first = start_of(warp);
        if (groups == 0) return {0, 0, 0};
        return {first / groups, first % groups, start_of(warp + 1) - first};
    }
    __device__ __forceinline__ uint32_t start_of(unsigned warp) const {
        const uint32_t all = tiles * groups;
        if (has_few_rows<Shape> && all < Shape::warps) return warp < all ? warp : all;
        return all * warp / Shape::warps;
    }
    // The warp that has this group of the block, of all tiles.
    __device__ __forceinline__ unsigned warp_of(uint32_t at) const {
        const uint32_t all = tiles * groups;
        if (has_few_rows<Shape> && all < Shape::warps) return at;
        return ((at + 1) * Shape::warps - 1) / all;
    }
    __device__ __forceinline__ uint32_t outputs_of(uint32_t tile) const {
        const uint32_t left = end_output - first_output - tile * tile_outputs;
        return left < tile_outputs ? left : tile_outputs;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
