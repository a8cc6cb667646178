#pragma once
// y = x W^T + bias of rows and weights in fp8, each with a scale: tensor cores multiply fp8, and
// find both in shared memory.
//
// They add up with fewer bits than float32 has, so that sums of 128 terms are added here. The
// blocks of a cluster send each other their sums, each adds up some columns, always in the same
// order.

#include "cuda/cluster.h"
#include "cuda/four.h"
#include "cuda/fp8_stages.h"
#include "cuda/launching.h"
#include "cuda/pack.h"
#include "cuda/wgmma_fp8.h"

namespace twinkle_pack::cuda {
namespace {

// Of a warp: 16 rows by 8 outputs for each tile.
template <class Shape>
struct Fp8Sums {
    Tile tiles[Shape::products][Shape::tiles] = {};

    // += a stage. `meanwhile`: what can be done when the first products are under way.
    template <class F>
    __device__ __forceinline__ void add(const char* stage, unsigned team, F meanwhile) {
        Tile next[2][Shape::tiles];
        start(next[0], stage, team, 0);
        if constexpr (Shape::products > 1) start(next[1], stage, team, 1);
        meanwhile();
#pragma unroll
        for (unsigned p = 0; p < Shape::products; ++p) {
            if (p + 1 < Shape::products)
                wait_for_products<1>(next[p % 2]);
            else
                wait_for_products<0>(next[p % 2]);
#pragma unroll
            for (unsigned j = 0; j < Shape::tiles; ++j)
#pragma unroll
                for (unsigned i = 0; i < 4; ++i) tiles[p][j].at[i] += next[p % 2][j].at[i];
            if (p + 2 < Shape::products) start(next[p % 2], stage, team, p + 2);
        }
    }

private:
    static __device__ __forceinline__ void start(Tile (&to)[Shape::tiles], const char* stage,
                                                 unsigned team, unsigned product) {
        const char* const a = stage + Shape::unit_of(team, product) * 64 * Shape::step;
        const char* const b =
            stage + (Shape::rows + Shape::piece_of(team, product) * Shape::piece) * Shape::step;
        before_products();
#pragma unroll
        for (unsigned k = 0; k < Shape::step; k += 32) start_products(to, a + k, b + k, k > 0);
        end_products();
    }
};

// The sums of two rows and two outputs, as a lane has them (mma.h).
__device__ __forceinline__ void store_results(const Fp8Arguments& a, uint32_t row, uint32_t end_row,
                                              uint32_t output, const Four& sums) {
    const float scales[2] = {a.scales[output], a.scales[output + 1]};
    const unsigned size = bytes_of(a.dtype);
    float bias[2] = {0, 0};
    if (a.bias)
        for (unsigned i = 0; i < 2; ++i)
            bias[i] =
                load_as<float>(a.dtype, static_cast<const char*>(a.bias) + (output + i) * size);
#pragma unroll
    for (unsigned below = 0; below < 2; ++below, row += 8) {
        if (row >= end_row) return;
        const float scale = a.x_scales[row];
        const float two[2] = {sums.number(2 * below) * scale * scales[0] + bias[0],
                              sums.number(2 * below + 1) * scale * scales[1] + bias[1]};
        char* const to = static_cast<char*>(a.y) + (uint64_t{row} * a.outputs + output) * size;
        switch (a.dtype) {
            case DType::float32: store(to, packed<float>(two)); break;
            case DType::bfloat16: store(to, packed<BFloat16>(two)); break;
            default: store(to, packed<Float16>(two));
        }
    }
}

// What the blocks of a cluster send each other: tiles of 16 rows and 8 outputs, which are divided
// by outputs. In place of the stages.
template <class Shape>
class Fp8Inbox {
public:
    __device__ __forceinline__ Fp8Inbox(const Fp8Arguments& a, const Fp8Share<Shape>& share,
                                        unsigned rank, char* shared)
        : a_(a), share_(share), rank_(rank), shared_(reinterpret_cast<float*>(shared)) {}

    __device__ __forceinline__ void exchange(const Fp8Sums<Shape>& sums, unsigned team) {
        arrive_in_cluster();
        wait_for_cluster();  // stages have been read
        const unsigned warp = threadIdx.x / 32 % 4;
#pragma unroll
        for (unsigned p = 0; p < Shape::products; ++p) {
            const unsigned rows = Shape::unit_of(team, p) * 4 + warp;
            if (rows * 16 >= share_.rows) continue;
#pragma unroll
            for (unsigned j = 0; j < Shape::tiles; ++j) {
                const unsigned tile = Shape::piece_of(team, p) * Shape::tiles + j;
                const unsigned to = (tile << a_.cluster_bits) / tiles;
                const float(&at)[4] = sums.tiles[p][j].at;
                store_in_block(to, place(rank_, tile - first_of(to), rows),
                               Four::of(at[0], at[1], at[2], at[3]).words);
            }
        }
        arrive_in_cluster();
        wait_for_cluster();
        const unsigned first = first_of(rank_), count = first_of(rank_ + 1) - first;
        const unsigned all = static_cast<unsigned>(quotient_up(share_.rows, 16)) * count;
        for (unsigned i = threadIdx.x / 32; i < all; i += Shape::warps) {
            const unsigned rows = i / count, tile = i % count;
            Four sum = Four::at(place(0, tile, rows));
            for (unsigned rank = 1; rank < 1u << a_.cluster_bits; ++rank)
                sum.add(Four::at(place(rank, tile, rows)));
            finish(rows, first + tile, sum);
        }
    }
    // Of a cluster of one block.
    __device__ __forceinline__ void finish(const Fp8Sums<Shape>& sums, unsigned team) {
        const unsigned warp = threadIdx.x / 32 % 4;
#pragma unroll
        for (unsigned p = 0; p < Shape::products; ++p)
#pragma unroll
            for (unsigned j = 0; j < Shape::tiles; ++j) {
                const float(&at)[4] = sums.tiles[p][j].at;
                finish(Shape::unit_of(team, p) * 4 + warp,
                       Shape::piece_of(team, p) * Shape::tiles + j,
                       Four::of(at[0], at[1], at[2], at[3]));
            }
    }

private:
    static constexpr unsigned tiles = 2 * Shape::tiles;
    static constexpr unsigned most_of_block(unsigned blocks) {
        return (tiles + blocks - 1) / blocks;
    }
    static_assert(8 * most_of_block(8) * (Shape::rows / 16) * 512 <= Shape::bytes &&
                  4 * most_of_block(4) * (Shape::rows / 16) * 512 <= Shape::bytes);

    __device__ __forceinline__ unsigned first_of(unsigned rank) const {
        return (rank * tiles + (1u << a_.cluster_bits) - 1) >> a_.cluster_bits;
    }
    // Of a lane, for what a block sends.
    __device__ __forceinline__ float* place(unsigned from_rank, unsigned tile,
                                            unsigned rows) const {
        const unsigned of_block = (tiles + (1u << a_.cluster_bits) - 1) >> a_.cluster_bits;
        return shared_ + ((from_rank * of_block + tile) * (Shape::rows / 16) + rows) * 128 +
               threadIdx.x % 32 * 4;
    }
    __device__ __forceinline__ void finish(unsigned rows, unsigned tile, const Four& sums) const {
        const uint32_t output = tile * 8 + threadIdx.x % 4 * 2;
        if (output < share_.outputs)
            store_results(a_, share_.first_row + rows * 16 + threadIdx.x % 32 / 4,
                          share_.first_row + share_.rows, share_.first_output + output, sums);
    }

    const Fp8Arguments& a_;
    const Fp8Share<Shape>& share_;
    const unsigned rank_;
    float* const shared_;
};

template <class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) fp8_products(Fp8Arguments a) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)  // see fp8_ways.h
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const Fp8Share<Shape> share(a, rank);
    char* const shared = shared_memory();
    Fp8Stages<Shape> stages(a, share, shared);
    if (a.early) stages.bring(a);
    wait_for_earlier();
    let_next_begin();

    // Shuffled, so that the compiler knows it to be the same for all of a warp.
    const unsigned team = shuffle_first(threadIdx.x / 128, 32);
    Fp8Sums<Shape> sums;
    for (unsigned i = 0; i + 1 < Shape::stages; ++i) stages.start();
#pragma unroll 1
    for (uint32_t step = 0; step < share.steps; ++step)
        sums.add(stages.wait(), team, [&] { stages.start(); });
    wait_for_copies<0>();

    Fp8Inbox<Shape> inbox(a, share, rank, shared);
    if (a.cluster_bits > 0)
        inbox.exchange(sums, team);
    else
        inbox.finish(sums, team);
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
