#pragma once
// Rows of x and packed weights in shared memory, some groups of 64 terms of each at a time: stages,
// of which each team of four warps reads one after the other, at its own pace, while four other
// warps bring more. Rows lie in the order of wgmma.h, weights and their scales as they are packed.

#include "cuda/async_copy.h"
#include "cuda/bits_product_share.h"
#include "cuda/wgmma.h"

namespace twinkle_pack::cuda {
namespace {

// In shared memory: which stages have arrived, and which have been read by all.
template <class Shape>
struct StageBarriers {
    ByteBarrier arrived[Shape::stages];
    ByteBarrier read[Shape::stages];

    // By one thread, before a barrier of the block.
    __device__ __forceinline__ void prepare() {
        for (ByteBarrier& one : arrived) one.prepare(Shape::suppliers);
        for (ByteBarrier& one : read) one.prepare(Shape::warps);
    }
};

// A stage, and which time it is used.
template <class Shape>
struct StagePlace {
    unsigned stage = 0;
    bool odd = false;

    __device__ __forceinline__ void advance() {
        if (++stage == Shape::stages) stage = 0, odd = !odd;
    }
};

// Brings the stages. For all suppliers.
template <class Shape>
class StageSupply {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ StageSupply(const BitsArguments& a, const ProductShare<Shape>& share,
                                           char* shared, StageBarriers<Shape>& barriers)
        : share_(share), shared_(shared), barriers_(barriers) {
        const uint32_t groups = a.row_bytes / W::bytes_of_group;
        x_apart_ = uint64_t{groups} * Shape::row_bytes * rows_at_once;
        x_ = a.x +
             (uint64_t{share.first_row + row()} * groups + share.first_group) * Shape::row_bytes +
             vector() * 16;
        x_to_ = row() * Shape::row_bytes + (vector() ^ row() % 8) * 16;
        weights_apart_ = uint64_t{blocks_at_once * block_outputs} * a.row_bytes;
        weights_ = a.weight +
                   uint64_t{share.first_output + thread() / vectors * block_outputs} * a.row_bytes +
                   uint64_t{share.first_group} * W::step + thread() % vectors * 16;
        const uint32_t output = share.first_output + thread() / scale_vectors * block_outputs;
        scales_ = a.scales + uint64_t{output} * a.scale_groups + share.first_group * block_outputs +
                  thread() % scale_vectors * 4;
    }

    // What is read first of weights: to the cache, also if an earlier kernel writes it.
    __device__ __forceinline__ void bring(const BitsArguments& a) const {
        constexpr uint32_t most = Shape::stages * Shape::groups;
        const uint32_t groups = share_.groups < most ? share_.groups : most;
        if (thread() >= share_.blocks || groups == 0) return;
        const uint64_t output = share_.first_output + thread() * block_outputs;
        bring_to_cache(a.weight + output * a.row_bytes + uint64_t{share_.first_group} * W::step,
                       groups * W::step);
    }

    __device__ __forceinline__ void run() {
        StagePlace<Shape> place;
#pragma unroll 1
        for (uint32_t left = share_.groups; left > 0; place.advance()) {
            const uint32_t count = left < Shape::groups ? left : Shape::groups;
            // The time before; there was none before the first.
            barriers_.read[place.stage].wait(!place.odd);
            start(place.stage, count);
            left -= count;
        }
    }

private:
    static constexpr unsigned rows_at_once = Shape::suppliers / 8;
    // Of a block's groups of a step.
    static constexpr unsigned vectors = Shape::groups * W::step / 16;
    static constexpr unsigned scale_vectors = Shape::groups * Shape::scales_step / 16;
    static constexpr unsigned blocks_at_once = Shape::suppliers / vectors;
    static_assert(Shape::suppliers % vectors == 0 && Shape::blocks % blocks_at_once == 0 &&
                  Shape::rows % rows_at_once == 0 &&
                  Shape::blocks * scale_vectors <= Shape::suppliers);

    static __device__ __forceinline__ unsigned thread() { return threadIdx.x % Shape::suppliers; }
    static __device__ __forceinline__ unsigned row() { return thread() / 8; }
    static __device__ __forceinline__ unsigned vector() { return thread() % 8; }

    __device__ __forceinline__ void start(unsigned stage, uint32_t count) {
        char* const to = shared_ + stage * Shape::stage_bytes;
#pragma unroll
        for (unsigned i = 0; i < Shape::groups; ++i)
            start_rows(to + i * Shape::rows * Shape::row_bytes, x_ + i * Shape::row_bytes,
                       i < count);
        start_weights(to + Shape::weights_at + thread() * 16, count);
        if (thread() < Shape::blocks * scale_vectors)
            start_copy_once(
                to + Shape::scales_at + thread() * 16, scales_,
                thread() / scale_vectors < share_.blocks && thread() % scale_vectors / 4 < count);
        barriers_.arrived[stage].arrive_with_copies();
        x_ += Shape::groups * Shape::row_bytes;
        weights_ += Shape::groups * W::step;
        scales_ += Shape::groups * block_outputs;
    }
    __device__ __forceinline__ void start_weights(char* to, uint32_t count) const {
        const bool there = thread() % vectors * 16 / W::step < count;
        const char* from = weights_;
#pragma unroll
        for (unsigned n = 0; n < Shape::blocks; n += blocks_at_once, from += weights_apart_)
            start_copy_once(to + n * Shape::groups * W::step, from,
                            there && n + thread() / vectors < share_.blocks);
    }
    // What is not there becomes zeros.
    __device__ __forceinline__ void start_rows(char* to, const char* from, bool there) const {
        to += x_to_;
#pragma unroll
        for (unsigned n = 0; n < Shape::rows; n += rows_at_once, from += x_apart_)
            start_copy_once(to + n * Shape::row_bytes, from, there && n + row() < share_.rows);
    }

    const ProductShare<Shape>& share_;
    char* const shared_;
    StageBarriers<Shape>& barriers_;
    const char *x_, *weights_;
    const float* scales_;
    uint64_t x_apart_, weights_apart_;
    uint32_t x_to_;
};

// Reads the stages. For each warp of a team.
template <class Shape>
class Stages {
public:
    __device__ __forceinline__ Stages(const char* shared, StageBarriers<Shape>& barriers)
        : shared_(shared), barriers_(barriers) {}

    // The next one has arrived.
    __device__ __forceinline__ const char* wait() {
        barriers_.arrived[next_.stage].wait(next_.odd);
        show_to_products();
        const char* const stage = shared_ + next_.stage * Shape::stage_bytes;
        next_.advance();
        return stage;
    }
    // This warp is done with the oldest one.
    __device__ __forceinline__ void release() {
        if (threadIdx.x % 32 == 0) barriers_.read[oldest_.stage].arrive();
        oldest_.advance();
    }

private:
    const char* const shared_;
    StageBarriers<Shape>& barriers_;
    StagePlace<Shape> next_, oldest_;
};

}  // namespace
}  // namespace twinkle_pack::cuda
