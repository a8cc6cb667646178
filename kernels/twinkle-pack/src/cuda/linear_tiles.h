#pragma once
// y = x W^T + bias by tensor cores, for up to 64 rows of x: as fast as W can be read.
//
// Rows of W are the tiles' rows, rows of x ("tokens") their columns. Blocks copy them into a ring
// of stages in shared memory, whole lines of the caches at a time. The warps of a block share the
// outputs and the inner dimension of a stage, the blocks of a cluster the inner dimension; each
// cluster has outputs of its own.

#include "cuda/async_copy.h"
#include "cuda/launching.h"
#include "cuda/linear_sums.h"

namespace twinkle_pack::cuda {
namespace {

// In a stage, the halves of each 128 bytes change places in every second row, so that a warp's
// reads of rows next to each other are in different banks.
__device__ __forceinline__ unsigned vector_place(unsigned row, unsigned vector) {
    return vector ^ (row % 2 * 4);
}

// Copies stage after stage, pass after pass.
template <class Shape>
class LinearReader {
public:
    __device__ __forceinline__ LinearReader(const LinearArguments& a,
                                            const LinearShare<Shape>& share)
        : a_(a), share_(share), output_(share.first_output), stage_(0) {
        row_ = threadIdx.x / Shape::row_vectors;
        column_ = threadIdx.x % Shape::row_vectors;
        place_ = row_ * Shape::row_bytes + vector_place(row_, column_) * 16;
    }

    // Starts the copies of a stage, of which there may be none left.
    __device__ __forceinline__ void start(char* stage) {
        if (share_.stages > 0 && output_ < share_.end_output) {
            const uint32_t at = share_.first_byte + stage_ * Shape::row_bytes + column_ * 16;
            copy_weight(stage + place_, at);
            copy_x(stage + Shape::outputs * Shape::row_bytes + place_, at);
            if (++stage_ == share_.stages) {
                stage_ = 0;
                output_ += share_.pass_outputs;
            }
        }
        end_copies();
    }

private:
    // Rows that no one asked for are left as they are: nothing of them reaches another row.
    __device__ __forceinline__ void copy_weight(char* to, uint32_t at) const {
        const bool inside = at < a_.inner_bytes;
        const uint32_t end = share_.pass_end(output_);
        const char* from = a_.weight + uint64_t{output_ + row_} * a_.inner_bytes + at;
#pragma unroll
        for (unsigned i = 0; i < Shape::outputs; i += Shape::rows_at_once) {
            if (output_ + row_ + i < end)
                start_copy_once(to + i * Shape::row_bytes, inside ? from : a_.weight, inside);
            from += uint64_t{a_.inner_bytes} * Shape::rows_at_once;
        }
    }
    __device__ __forceinline__ void copy_x(char* to, uint32_t at) const {
        const bool inside = at < a_.inner_bytes;
        const char* from = a_.x + uint64_t{row_} * a_.inner_bytes + at;
#pragma unroll
        for (unsigned i = 0; i < Shape::tokens; i += Shape::rows_at_once) {
            if (row_ + i < a_.tokens && row_ + i < Shape::tokens)
                start_copy(to + i * Shape::row_bytes, inside ? from : a_.x, inside);
            from += uint64_t{a_.inner_bytes} * Shape::rows_at_once;
        }
    }

    const LinearArguments& a_;
    const LinearShare<Shape>& share_;
    uint32_t output_, stage_;
    unsigned row_, column_, place_;
};

// What a block reads first, as far as it is no earlier kernel's result in any case: the weight.
template <class Shape>
__device__ __forceinline__ void bring_weight(const LinearArguments& a,
                                             const LinearShare<Shape>& share) {
    const uint32_t left = share.first_byte < a.inner_bytes ? a.inner_bytes - share.first_byte : 0;
    const uint32_t bytes = a.early_bytes < left ? a.early_bytes : left;
    if (bytes == 0) return;
    for (uint32_t output = share.first_output + threadIdx.x;
         output < share.pass_end(share.first_output); output += Shape::threads)
        bring_to_cache(a.weight + uint64_t{output} * a.inner_bytes + share.first_byte, bytes);
}

// Where a lane finds what it multiplies.
struct LinearLane {
    unsigned weight, x, half[2];

    __device__ __forceinline__ LinearLane(unsigned output, unsigned first_token,
                                          unsigned inner_warp, unsigned row_bytes) {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        weight = (output + g) * row_bytes + inner_warp * 128;
        x = (first_token + g) * row_bytes + inner_warp * 128;
        for (unsigned i = 0; i < 2; ++i) half[i] = vector_place(g, i * 4 + t) * 16;
    }
};

// tiles += a stage.
template <class T, class Shape>
__device__ __forceinline__ void multiply_stage(Tile (&tiles)[Shape::down][Shape::across],
                                               const char* stage, const LinearLane& lane) {
#pragma unroll
    for (unsigned i = 0; i < 2; ++i)
        multiply_unit<T, Shape::row_bytes * 8>(tiles, stage + lane.weight + lane.half[i],
                                               stage + lane.x + lane.half[i]);
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) linear_tiles(LinearArguments a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // see serves() in linear.cu
    char* const ring = shared_memory();
    const unsigned warp = threadIdx.x / 32;
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const LinearShare<Shape> share(a, rank);
    if (a.cluster_bits > 0) arrive_in_cluster();
    bring_weight(a, share);
    wait_for_earlier();
    let_next_begin();

    LinearReader<Shape> reader(a, share);
    for (unsigned i = 0; i + 1 < Shape::depth; ++i) reader.start(ring + i * Shape::stage_bytes);
    if (a.cluster_bits > 0) wait_for_cluster();

    float* const sums = reinterpret_cast<float*>(ring + Shape::ring_bytes);
    LinearSums<T, Shape> result{a, share, sums, sums + Shape::sums_bytes / 4, rank};
    const LinearLane lane(warp / Shape::inner_warps * Shape::warp_outputs, Shape::outputs,
                          warp % Shape::inner_warps, Shape::row_bytes);
    unsigned place = 0;
    for (uint32_t output = share.first_output; output < share.end_output;
         output += share.pass_outputs) {
        Tile tiles[Shape::down][Shape::across] = {};
        for (uint32_t i = 0; i < share.stages; ++i) {
            wait_for_copies<Shape::depth - 2>();
            __syncthreads();
            // Into the stage that was multiplied last.
            reader.start(ring + (place == 0 ? Shape::depth - 1 : place - 1) * Shape::stage_bytes);
            multiply_stage<T, Shape>(tiles, ring + place * Shape::stage_bytes, lane);
            if (++place == Shape::depth) place = 0;
        }
        result.add(tiles, output, output + share.pass_outputs >= share.end_output);
    }
    wait_for_copies<0>();
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
