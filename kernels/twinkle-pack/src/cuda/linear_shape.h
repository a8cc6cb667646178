#pragma once
// How a linear layer is divided among warps, blocks and clusters (linear_tiles.h).

#include "cuda/platform.h"

namespace twinkle_pack::cuda {
namespace {

struct LinearArguments {
    const char *x, *weight;
    const void* bias;
    void* y;
    uint32_t tokens, outputs;
    uint32_t inner_bytes;  // of a row of x and of W; 16 divides it
    uint32_t clusters;
    uint32_t cluster_bits;  // of the blocks in a cluster, a power of two
    uint32_t early_bytes;   // of each row of W, brought to the cache before earlier kernels end
};

// Tiles of a warp: `down` of 16 outputs, by `across` of 8 tokens. Warps of a block: `output_warps`
// of as many outputs each, by `inner_warps` that share the inner dimension by 128 bytes of each
// row. `depth`: stages of the ring.
template <int down_, int across_, int output_warps_, int inner_warps_, int depth_>
struct LinearShape {
    static constexpr unsigned down = down_, across = across_;
    static constexpr unsigned output_warps = output_warps_, inner_warps = inner_warps_;
    static constexpr unsigned warps = output_warps * inner_warps, threads = warps * 32;
    static constexpr unsigned warp_outputs = down * 16, outputs = warp_outputs * output_warps;
    static constexpr unsigned tokens = across * 8;

    // Sums are exchanged for `together` columns of tiles at a time, [token][output]; `pitch` keeps
    // a warp's stores in different banks.
    static constexpr unsigned together = across < 2 ? across : 2;
    static constexpr unsigned pitch = warp_outputs + 4;
    static constexpr unsigned warp_sums = together * 8 * pitch;
    static constexpr unsigned sums_bytes = warps * warp_sums * 4;
    static constexpr unsigned inbox_bytes = outputs * tokens * 4;

    static constexpr unsigned depth = depth_;
    static constexpr unsigned row_bytes = inner_warps * 128, row_vectors = row_bytes / 16;
    static constexpr unsigned stage_bytes = (outputs + tokens) * row_bytes;
    static constexpr unsigned ring_bytes = depth * stage_bytes;

    static constexpr unsigned shared_bytes(bool clustered) {
        return ring_bytes + sums_bytes + (clustered ? inbox_bytes : 0);
    }
    // How many rows the block's threads copy at once; each thread always has the same column.
    static constexpr unsigned rows_at_once = threads / row_vectors;
    static_assert(threads % row_vectors == 0 && outputs % rows_at_once == 0);
};

// The outputs of a cluster, in passes, and the bytes of a row of a block.
template <class Shape>
struct LinearShare {
    uint32_t first_output, end_output, pass_outputs;
    uint32_t first_byte, stages;

    __device__ __forceinline__ LinearShare(const LinearArguments& a, unsigned rank) {
        const uint64_t cluster = blockIdx.x >> a.cluster_bits;
        first_output = static_cast<uint32_t>(a.outputs * cluster / a.clusters);
        end_output = static_cast<uint32_t>(a.outputs * (cluster + 1) / a.clusters);
        const uint32_t all = end_output - first_output;
        const uint32_t passes = (all + Shape::outputs - 1) / Shape::outputs;
        pass_outputs = passes == 0 ? 1 : (all + passes - 1) / passes;
        const uint64_t units = (a.inner_bytes + Shape::row_bytes - 1) / Shape::row_bytes;
        const auto from = static_cast<uint32_t>(units * rank >> a.cluster_bits);
        const auto to = static_cast<uint32_t>(units * (rank + 1) >> a.cluster_bits);
        first_byte = from * Shape::row_bytes;
        stages = to - from;
    }

    __device__ __forceinline__ uint32_t pass_end(uint32_t output) const {
        return output + pass_outputs < end_output ? output + pass_outputs : end_output;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
