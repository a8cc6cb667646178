#pragma once
// Adds what warps and blocks have summed up of a linear layer's results, and stores them.

#include "cuda/cluster.h"
#include "cuda/four.h"
#include "cuda/linear_products.h"
#include "cuda/linear_shape.h"
#include "cuda/pack.h"

namespace twinkle_pack::cuda {
namespace {

// A result: where the sum is not a number but the exact one may be, that is found.
template <class T>
__device__ __forceinline__ void store_result(const LinearArguments& a, uint32_t output,
                                             uint32_t token, float sum) {
    if constexpr (std::is_same_v<T, float>)
        if (!is_finite(sum)) sum = plain_product(a.x, a.weight, a.inner_bytes, output, token);
    if (a.bias) sum += to_float(static_cast<const T*>(a.bias)[output]);
    static_cast<T*>(a.y)[uint64_t{token} * a.outputs + output] = rounded<T>(sum);
}

constexpr unsigned bits_of(unsigned power) {
    unsigned bits = 0;
    while (power >> bits > 1) ++bits;
    return bits;
}

// Adds the sums of a block's warps, in their order, and of the cluster's blocks.
template <class T, class Shape>
struct LinearSums {
    const LinearArguments& a;
    const LinearShare<Shape>& share;
    float* const sums;   // of this block's warps
    float* const inbox;  // [block][token][output]: of this block's part of the outputs
    const unsigned rank;
    bool others_there = false;

    __device__ __forceinline__ void add(const Tile (&tiles)[Shape::down][Shape::across],
                                        uint32_t output, bool last) {
#pragma unroll
        for (unsigned first = 0; first < Shape::across; first += Shape::together) {
            put(tiles, first);
            __syncthreads();
            collect(output, first * 8);
            __syncthreads();
        }
        if (a.cluster_bits == 0) return;
        arrive_in_cluster();
        wait_for_cluster();
        empty_inbox(output);
        if (last) return;
        arrive_in_cluster();
        wait_for_cluster();
    }

private:
    __device__ __forceinline__ void put(const Tile (&tiles)[Shape::down][Shape::across],
                                        unsigned first) {
        const unsigned lane = threadIdx.x % 32;
        float* const mine = sums + threadIdx.x / 32 * Shape::warp_sums;
#pragma unroll
        for (unsigned j = 0; j < Shape::together; ++j)
#pragma unroll
            for (unsigned m = 0; m < Shape::down; ++m)
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
                    mine[(j * 8 + lane % 4 * 2 + i % 2) * Shape::pitch + m * 16 + i / 2 * 8 +
                         lane / 4] = tiles[m][first + j].at[i];
    }

    __device__ __forceinline__ void collect(uint32_t output, uint32_t token) {
        constexpr unsigned vectors = Shape::outputs / 4;
        for (unsigned e = threadIdx.x; e < vectors * Shape::together * 8; e += Shape::threads) {
            const unsigned row = e % vectors * 4, column = e / vectors;
            if (output + row >= share.pass_end(output) || token + column >= a.tokens) continue;
            const float* from = sums +
                                row / Shape::warp_outputs * Shape::inner_warps * Shape::warp_sums +
                                column * Shape::pitch + row % Shape::warp_outputs;
            Four sum = Four::at(from);
#pragma unroll
            for (unsigned i = 1; i < Shape::inner_warps; ++i)
                sum.add(Four::at(from + i * Shape::warp_sums));
            if (a.cluster_bits == 0)
                store(output + row, share.pass_end(output), token + column, sum);
            else
                send(row, token + column, sum);
        }
    }

    // Of the outputs each block of the cluster adds and stores a part.
    static constexpr unsigned output_bits = bits_of(Shape::outputs);
    static_assert(1u << output_bits == Shape::outputs);
    __device__ __forceinline__ unsigned part_bits() const { return output_bits - a.cluster_bits; }

    __device__ __forceinline__ void send(unsigned row, unsigned token, const Four& sum) {
        const unsigned to = row >> part_bits();
        float* const mine =
            inbox + ((rank * Shape::tokens + token) << part_bits()) + (row - (to << part_bits()));
        store_in_block(to, mine, sum.words);
    }

    __device__ __forceinline__ void empty_inbox(uint32_t output) {
        const uint32_t end = share.pass_end(output);
        const unsigned all = a.tokens << part_bits();
        output += rank << part_bits();
        for (unsigned e = threadIdx.x * 4; e < all; e += Shape::threads * 4) {
            const unsigned row = e & ((1u << part_bits()) - 1), token = e >> part_bits();
            if (output + row >= end) continue;
            Four sum = Four::at(inbox + e);
            for (unsigned i = 1; i < 1u << a.cluster_bits; ++i)
                sum.add(Four::at(inbox + ((i * Shape::tokens) << part_bits()) + e));
            store(output + row, end, token, sum);
        }
    }

    __device__ __forceinline__ void store(uint32_t output, uint32_t end, uint32_t token,
                                          const Four& sum) {
#pragma unroll
        for (unsigned i = 0; i < 4; ++i)
            if (output + i < end) store_result<T>(a, output + i, token, sum.number(i));
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
