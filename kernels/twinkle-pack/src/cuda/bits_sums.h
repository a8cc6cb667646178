#pragma once
// Adds what warps and blocks have summed up of a linear layer with packed weights, in their order,
// and stores the results.
//
// Tile after tile, a warp's part of a sum lies in shared memory at slot [warp + tile], which is
// nobody else's. Of each token it has eight vectors of four outputs (output_at of the weights).

#include "cuda/bits_shape.h"
#include "cuda/cluster.h"
#include "cuda/four.h"
#include "cuda/mma.h"
#include "cuda/pack.h"
#include "cuda/scalar.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned vectors_of_tile = tile_outputs / 4;
constexpr unsigned token_pitch = tile_outputs + 4;  // neighbours are in different banks

// In floats, of a block with so many tiles.
__device__ __host__ constexpr uint64_t slots_size(uint64_t warps, uint64_t tiles, uint64_t tokens) {
    return (warps + tiles - 1) * tokens * token_pitch;
}
// Of vectors of the block's sums, those that each block of a cluster adds and stores.
__device__ __host__ constexpr uint32_t part_of(uint32_t vectors, unsigned cluster_bits) {
    return (vectors + (1u << cluster_bits) - 1) >> cluster_bits;
}

template <class T, class Shape>
class BitsSums {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ BitsSums(const BitsArguments& a, const BitsShare<Shape>& share,
                                        unsigned rank, float* shared)
        : a_(a), share_(share), rank_(rank), slots_(shared) {
        inbox_ = shared + slots_size(Shape::warps, share.tiles, a.tokens);
    }

    // Until finish() the cluster must meet, for which its blocks arrive here.
    __device__ __forceinline__ void prepare(Arrivals&) const {
        if (a_.cluster_bits > 0) arrive_in_cluster_empty();
    }
    __device__ __forceinline__ void bring_ends() const {}
    __device__ __forceinline__ void read_ends() const {}

    __device__ __forceinline__ void put(const Tile (&tiles)[2][Shape::across], uint32_t tile) {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        float* const slot = slot_of(threadIdx.x / 32, tile) + g * 4;
#pragma unroll
        for (unsigned j = 0; j < Shape::across; ++j)
#pragma unroll
            for (unsigned i = 0; i < 2; ++i) {
                const uint32_t token = j * 8 + t * 2 + i;
                if (token < a_.tokens)
                    Four::of(tiles[0][j].at[i], tiles[0][j].at[i + 2], tiles[1][j].at[i],
                             tiles[1][j].at[i + 2])
                        .store(slot + token * token_pitch);
            }
    }

    // By all threads, once all have put.
    __device__ __forceinline__ void finish() {
        __syncthreads();
        const uint32_t all = share_.tiles * a_.tokens * vectors_of_tile;
        if (a_.cluster_bits == 0) {
            for (uint32_t at = threadIdx.x; at < all; at += Shape::threads) store(at, collect(at));
            return;
        }
        const uint32_t part = part_of(all, a_.cluster_bits);
        for (uint32_t at = threadIdx.x; at < all; at += Shape::threads) {
            const uint32_t to = at / part;
            store_in_block(to, inbox_ + uint64_t{rank_ * part + at - to * part} * 4,
                           collect(at).words);
        }
        arrive_in_cluster();
        wait_for_cluster();
        const uint32_t end = (rank_ + 1) * part < all ? (rank_ + 1) * part : all;
        for (uint32_t at = rank_ * part + threadIdx.x; at < end; at += Shape::threads) {
            const float* from = inbox_ + uint64_t{at - rank_ * part} * 4;
            Four sum = Four::at(from);
            for (unsigned i = 1; i < 1u << a_.cluster_bits; ++i)
                sum.add(Four::at(from += uint64_t{part} * 4));
            store(at, sum);
        }
    }

protected:
    __device__ __forceinline__ float* slot_of(unsigned warp, uint32_t tile) const {
        return slots_ + uint64_t{(warp + tile) * a_.tokens} * token_pitch;
    }

    const BitsArguments& a_;
    const BitsShare<Shape>& share_;
    const unsigned rank_;
    float *slots_, *inbox_;  // [block of the cluster][vector]

private:
    // The block's sum: of a tile's warps, which may be none.
    __device__ __forceinline__ Four collect(uint32_t at) const {
        const uint32_t tile = at / vectors_of_tile / a_.tokens;
        const uint32_t token = at / vectors_of_tile % a_.tokens;
        const uint32_t place = token * token_pitch + at % vectors_of_tile * 4;
        Four sum = Four::of(0, 0, 0, 0);
        if (share_.groups == 0) return sum;
        const unsigned first = share_.warp_of(tile * share_.groups);
        const unsigned last = share_.warp_of((tile + 1) * share_.groups - 1);
        for (unsigned warp = first; warp <= last; ++warp)
            if (share_.start_of(warp) < share_.start_of(warp + 1))
                sum.add(Four::at(slot_of(warp, tile) + place));
        return sum;
    }

    __device__ __forceinline__ void store(uint32_t at, const Four& sum) const {
        const uint32_t tile = at / vectors_of_tile / a_.tokens;
        const uint32_t token = at / vectors_of_tile % a_.tokens;
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            const uint32_t in_tile = W::output_at(i / 2, i % 2, at % vectors_of_tile);
            if (in_tile < share_.outputs_of(tile))
                store_one(share_.first_output + tile * tile_outputs + in_tile, token,
                          sum.number(i));
        }
    }
    __device__ __forceinline__ void store_one(uint32_t output, uint32_t token, float sum) const {
        if (!W::grouped) sum *= a_.scales[output];
        if (a_.bias) sum += to_float(static_cast<const T*>(a_.bias)[output]);
        static_cast<T*>(a_.y)[uint64_t{token} * a_.outputs + output] = rounded<T>(sum);
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
