#pragma once
// Adds what the warps and blocks of a cluster have summed up in a pass (bits_strips.h), in their
// order, and stores the results.
//
// Each block adds up some tiles of eight rows, sent by all warps of all blocks into its shared
// memory.

#include "cuda/bits_strip.h"
#include "cuda/bits_sums.h"
#include "cuda/cluster.h"
#include "cuda/four.h"
#include "cuda/mma.h"
#include "cuda/pack.h"

namespace twinkle_pack::cuda {
namespace {

template <class Shape>
class StripInbox {
    using W = typename Shape::Weights;

public:
    // In bytes, of each block.
    static __device__ __host__ constexpr uint32_t size(unsigned cluster_bits) {
        return (tiles_of_block(cluster_bits) * tile_size * Shape::warps << cluster_bits) *
               static_cast<uint32_t>(sizeof(float));
    }

    __device__ __forceinline__ StripInbox(const BitsArguments& a, const StripShare<Shape>& share,
                                          unsigned rank, float* shared)
        : a_(a), share_(share), rank_(rank), shared_(shared) {
        if (a.cluster_bits > 0) arrive_in_cluster();
    }

    // By all threads, after each pass and at least one barrier of the block. `last`: nothing is
    // sent any more.
    template <class T>
    __device__ __forceinline__ void exchange(T type, const Tile (&tiles)[2][Shape::across / 8][8],
                                             const StripPass& pass, bool has_tile, bool last) {
        if (a_.cluster_bits > 0) wait_for_cluster();  // what came last has been read
        if (has_tile) send(tiles);
        if (a_.cluster_bits > 0) {
            arrive_in_cluster();
            wait_for_cluster();
        } else {
            __syncthreads();
        }
        add_up(type, pass);
        if (a_.cluster_bits > 0 && !last) arrive_in_cluster();
    }

private:
    static constexpr uint32_t tile_size = 8 * token_pitch;

    static __device__ __host__ constexpr uint32_t tiles_of_block(unsigned cluster_bits) {
        return (Shape::across + (1u << cluster_bits) - 1) >> cluster_bits;
    }
    // Of a block, the first tile of eight rows.
    __device__ __forceinline__ uint32_t first_of(uint32_t rank) const {
        return (rank * Shape::across + (1u << a_.cluster_bits) - 1) >> a_.cluster_bits;
    }
    // Where a block gets the sums of a warp of a block.
    __device__ __forceinline__ float* place(unsigned from_rank, unsigned warp) const {
        return shared_ +
               (from_rank * Shape::warps + warp) * tiles_of_block(a_.cluster_bits) * tile_size;
    }

    __device__ __forceinline__ void send(const Tile (&tiles)[2][Shape::across / 8][8]) {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        float* const mine = place(rank_, threadIdx.x / 32) + t * 2 * token_pitch + g * 4;
#pragma unroll
        for (unsigned j = 0; j < Shape::across; ++j) {
            if (j * 8 >= share_.rows) break;
            const uint32_t to = (j << a_.cluster_bits) / Shape::across;
            float* const there = mine + (j - first_of(to)) * tile_size;
#pragma unroll
            for (unsigned i = 0; i < 2; ++i) {
                const Four four =
                    Four::of(tiles[0][j / 8][j % 8].at[i], tiles[0][j / 8][j % 8].at[i + 2],
                             tiles[1][j / 8][j % 8].at[i], tiles[1][j / 8][j % 8].at[i + 2]);
                if (a_.cluster_bits > 0)
                    store_in_block(to, there + i * token_pitch, four.words);
                else
                    four.store(there + i * token_pitch);
            }
        }
    }

    // Each warp has a tile, as when it multiplied, and takes four rows at a time, a lane four
    // outputs.
    template <class T>
    __device__ __forceinline__ void add_up(T, const StripPass& pass) const {
        const uint32_t warp = threadIdx.x / 32, tile = warp % pass.width;
        const uint32_t vector = threadIdx.x % 8, in_pass = pass.first_tile + tile;
        const uint32_t part = warp / pass.width, parts = Shape::warps / pass.width;
        if (part >= parts || tile >= pass.tiles || vector * 4 >= share_.outputs_of(in_pass)) return;
        const uint32_t output = share_.first_output + in_pass * tile_outputs + vector * 4;
        float bias[4] = {};
        if (a_.bias)
#pragma unroll
            for (unsigned i = 0; i < 4; ++i)
                bias[i] = to_float(static_cast<const T*>(a_.bias)[output + i]);
        const uint32_t first_row = first_of(rank_) * 8;
        uint32_t end_row = first_of(rank_ + 1) * 8;
        if (end_row > share_.rows) end_row = share_.rows;
        const uint32_t of_warp = tiles_of_block(a_.cluster_bits) * tile_size;
        for (uint32_t row = first_row + part * 4 + threadIdx.x % 32 / 8; row < end_row;
             row += parts * 4) {
            const float* from = place(0, tile) + (row - first_row) * token_pitch + vector * 4;
            Four sum = Four::of(0, 0, 0, 0);
            for (unsigned rank = 0; rank < 1u << a_.cluster_bits; ++rank) {
                sum.add(Four::at(from));
                if (pass.parts > 1) sum.add(Four::at(from + pass.width * of_warp));
                if (Shape::teams > 2 && pass.parts > 2)
                    sum.add(Four::at(from + 2 * pass.width * of_warp));
                from += Shape::warps * of_warp;
            }
            float four[4];
#pragma unroll
            for (unsigned i = 0; i < 4; ++i) four[i] = sum.number(i) + bias[i];
            store_four(packed<T>(four), share_.first_row + row, output);
        }
    }
    template <class T>
    __device__ __forceinline__ void store_four(const Pack<T, 4>& four, uint32_t row,
                                               uint32_t output) const {
        uint2 words;
        __builtin_memcpy(&words, &four, sizeof words);
        T* const to = static_cast<T*>(a_.y) + uint64_t{row} * a_.outputs + output;
        *reinterpret_cast<uint2*>(to) = words;
    }

    const BitsArguments& a_;
    const StripShare<Shape>& share_;
    const unsigned rank_;
    float* const shared_;  // [block of the cluster][warp][tile of eight rows]
};

}  // namespace
}  // namespace twinkle_pack::cuda
