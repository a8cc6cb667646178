#pragma once
// Rows of x and packed weights in shared memory, some groups of 64 terms of each at a time: stages
// of which two are read while the others arrive. Rows lie in the order of wgmma.h, weights and
// their scales as they are packed.

#include "cuda/async_copy.h"
#include "cuda/bits_product_share.h"
#include "cuda/wgmma.h"

namespace twinkle_pack::cuda {
namespace {

template <class Shape>
class BitsStages {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ BitsStages(const BitsArguments& a, const ProductShare<Shape>& share,
                                          char* shared)
        : share_(share), shared_(shared) {
        const uint32_t groups = a.row_bytes / W::bytes_of_group;
        x_apart_ = uint64_t{groups} * Shape::row_bytes * (Shape::threads / 8);
        x_ = a.x +
             (uint64_t{share.first_row + row()} * groups + share.first_group) * Shape::row_bytes +
             vector() * 16;
        x_to_ = row() * Shape::row_bytes + (vector() ^ row() % 8) * 16;
        weights_apart_ = uint64_t{blocks_at_once * block_outputs} * a.row_bytes;
        weights_ = a.weight + uint64_t{share.first_output + block() * block_outputs} * a.row_bytes +
                   uint64_t{share.first_group} * W::step + threadIdx.x % vectors * 16;
        const uint32_t output = share.first_output + threadIdx.x / scale_vectors * block_outputs;
        scales_ = a.scales + uint64_t{output} * a.scale_groups + share.first_group * block_outputs +
                  threadIdx.x % scale_vectors * 4;
    }

    // What is read first of weights: to the cache, also if an earlier kernel writes it.
    __device__ __forceinline__ void bring(const BitsArguments& a) const {
        constexpr uint32_t most = Shape::stages * Shape::groups;
        const uint32_t groups = share_.groups < most ? share_.groups : most;
        if (threadIdx.x >= share_.blocks || groups == 0) return;
        const uint64_t output = share_.first_output + threadIdx.x * block_outputs;
        bring_to_cache(a.weight + output * a.row_bytes + uint64_t{share_.first_group} * W::step,
                       groups * W::step);
    }

    // The next step, if there is one. By all threads. What is not there becomes zeros.
    __device__ __forceinline__ void start() {
        if (started_ < share_.steps) {
            char* const to = shared_ + started_ % Shape::stages * Shape::stage_bytes;
            const uint32_t left = share_.groups - started_ * Shape::groups;
#pragma unroll
            for (unsigned i = 0; i < Shape::groups; ++i)
                start_rows(to + i * Shape::rows * Shape::row_bytes + x_to_,
                           x_ + i * Shape::row_bytes, i < left);
            start_weights(to + Shape::weights_at + threadIdx.x * 16, left);
            if (threadIdx.x < Shape::blocks * scale_vectors) {
                const bool there = threadIdx.x / scale_vectors < share_.blocks &&
                                   threadIdx.x % scale_vectors / 4 < left;
                start_copy_once(to + Shape::scales_at + threadIdx.x * 16, scales_, there);
            }
            x_ += Shape::groups * Shape::row_bytes;
            weights_ += Shape::groups * W::step;
            scales_ += Shape::groups * block_outputs;
        }
        ++started_;
        end_copies();
    }
    // The oldest stage has arrived for all threads, which are done with the one before the last.
    __device__ __forceinline__ const char* wait() {
        wait_for_copies<Shape::stages - 3>();
        show_to_products();
        __syncthreads();
        return shared_ + read_++ % Shape::stages * Shape::stage_bytes;
    }
    static constexpr unsigned ahead = Shape::stages - 2;  // steps, started before the first wait

private:
    // Of a block's groups of a step.
    static constexpr unsigned vectors = Shape::groups * W::step / 16;
    static constexpr unsigned scale_vectors = Shape::groups * 4;
    static constexpr unsigned blocks_at_once = Shape::threads / vectors;
    static_assert(Shape::threads % vectors == 0 && Shape::blocks % blocks_at_once == 0);

    static __device__ __forceinline__ unsigned row() { return threadIdx.x / 8; }
    static __device__ __forceinline__ unsigned vector() { return threadIdx.x % 8; }
    static __device__ __forceinline__ unsigned block() { return threadIdx.x / vectors; }

    __device__ __forceinline__ void start_rows(char* to, const char* from, bool there) const {
        constexpr unsigned at_once = Shape::threads / 8;
#pragma unroll
        for (unsigned n = 0; n < Shape::rows; n += at_once, from += x_apart_)
            if (Shape::rows % at_once == 0 || n + row() < Shape::rows)
                start_copy_once(to + n * Shape::row_bytes, from, there && n + row() < share_.rows);
    }
    __device__ __forceinline__ void start_weights(char* to, uint32_t left) const {
        const bool there = threadIdx.x % vectors * 16 / W::step < left;
        const char* from = weights_;
#pragma unroll
        for (unsigned n = 0; n < Shape::blocks; n += blocks_at_once, from += weights_apart_)
            start_copy_once(to + n * Shape::groups * W::step, from,
                            there && n + block() < share_.blocks);
    }

    const ProductShare<Shape>& share_;
    char* const shared_;
    const char *x_, *weights_;
    const float* scales_;
    uint64_t x_apart_, weights_apart_;
    uint32_t x_to_;
    uint32_t started_ = 0, read_ = 0;
};

}  // namespace
}  // namespace twinkle_pack::cuda
