#pragma once
// Rows of x and weights of fp8 in shared memory, 128 terms of each at a time, in the order of
// wgmma.h: stages of which one is read while the others arrive.

#include "cuda/async_copy.h"
#include "cuda/fp8_share.h"
#include "cuda/wgmma.h"

namespace twinkle_pack::cuda {
namespace {

template <class Shape>
class Fp8Stages {
public:
    __device__ __forceinline__ Fp8Stages(const Fp8Arguments& a, const Fp8Share<Shape>& share,
                                         char* shared)
        : share_(share), shared_(shared), depth_(a.depth) {
        at_ = share.first_step * Shape::step + vector() * 16;
        const uint64_t row_bytes = a.depth;
        x_ = a.x + (share.first_row + row()) * row_bytes + at_;
        weight_ = a.weight + (share.first_output + row()) * row_bytes + at_;
        apart_ = at_once * row_bytes;
        to_ = row() * Shape::step + (vector() ^ row() % 8) * 16;
    }

    // What is read first of weights: to the cache, also if an earlier kernel writes it.
    __device__ __forceinline__ void bring(const Fp8Arguments& a) const {
        if (threadIdx.x >= share_.outputs || share_.steps == 0) return;
        const uint32_t first = share_.first_step * Shape::step, left = a.depth - first;
        const uint32_t most =
            (share_.steps < Shape::stages ? share_.steps : Shape::stages) * Shape::step;
        bring_to_cache(a.weight + uint64_t{share_.first_output + threadIdx.x} * a.depth + first,
                       left < most ? left : most);
    }

    // The next step, if there is one. By all threads. Rows that are not there become zeros.
    __device__ __forceinline__ void start() {
        if (started_ < share_.steps) {
            char* const to = shared_ + to_ + started_ % Shape::stages * Shape::stage_bytes;
            const bool inside = at_ < depth_;
            const char* from = x_;
#pragma unroll
            for (unsigned n = 0; n < Shape::rows; n += at_once, from += apart_)
                start_copy_once(to + n * Shape::step, from, inside && n + row() < share_.rows);
            from = weight_;
#pragma unroll
            for (unsigned n = 0; n < Shape::outputs; n += at_once, from += apart_)
                if (Shape::outputs % at_once == 0 || n + row() < Shape::outputs)
                    start_copy_once(to + (Shape::rows + n) * Shape::step, from,
                                    inside && n + row() < share_.outputs);
            x_ += Shape::step, weight_ += Shape::step, at_ += Shape::step;
        }
        ++started_;
        end_copies();
    }
    // The oldest stage has arrived for all threads, which are done with the one before.
    __device__ __forceinline__ const char* wait() {
        wait_for_copies<Shape::stages - 2>();
        show_to_products();
        __syncthreads();
        return shared_ + read_++ % Shape::stages * Shape::stage_bytes;
    }

private:
    static constexpr unsigned at_once = Shape::threads / 8;
    static __device__ __forceinline__ unsigned row() { return threadIdx.x / 8; }
    static __device__ __forceinline__ unsigned vector() { return threadIdx.x % 8; }

    const Fp8Share<Shape>& share_;
    char* const shared_;
    const uint32_t depth_;
    const char *x_, *weight_;
    uint64_t apart_;
    uint32_t at_, to_;
    uint32_t started_ = 0, read_ = 0;
};

}  // namespace
}  // namespace twinkle_pack::cuda
