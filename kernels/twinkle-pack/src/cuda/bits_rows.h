#pragma once
// Rows of x in shared memory, for products with packed weights (bits_strips.h): two stages of some
// groups, of which one is read while the other arrives.
//
// A group of a row is 128 bytes, in the order of wgmma.h.

#include "cuda/async_copy.h"
#include "cuda/bits_strip.h"
#include "cuda/places.h"
#include "cuda/wgmma.h"

namespace twinkle_pack::cuda {
namespace {

template <class Shape>
class StripRows {
public:
    static constexpr unsigned row_bytes = 128, group_bytes = Shape::rows * row_bytes;
    static constexpr unsigned stage_bytes = Shape::stage * group_bytes;

    __device__ __forceinline__ StripRows(const BitsArguments& a, const StripShare<Shape>& share,
                                         char* shared)
        : share_(share),
          shared_(shared),
          stride_(int64_t{a.row_bytes / Shape::Weights::bytes_of_group} * row_bytes) {
        const unsigned row = threadIdx.x / 8, vector = threadIdx.x % 8;
        from_ =
            a.x + share.first_row * stride_ + int64_t{share.first_group} * row_bytes + vector * 16;
        to_ = row * row_bytes + (vector ^ row % 8) * 16;
#pragma unroll
        for (unsigned n = 0; n < sizeof rows_ / sizeof *rows_; ++n) {
            const unsigned one = n * Shape::threads / 8 + row;
            rows_[n] = (one < share.rows ? one : share.rows - 1) * static_cast<uint32_t>(stride_);
        }
    }

    // From this group of the block's on. Rows that are not there become zeros: if the last one were
    // read instead, all blocks would wait for the same bytes. By all threads.
    __device__ __forceinline__ void start(uint32_t first_group) {
        constexpr unsigned at_once = Shape::threads / 8;
        char* const to = shared_ + started_ * stage_bytes + to_;
        const char* const from = from_ + int64_t{first_group} * row_bytes;
#pragma unroll
        for (unsigned group = 0; group < Shape::stage; ++group) {
            if (first_group + group >= share_.groups) break;
#pragma unroll
            for (unsigned n = 0; n < quotient_up(Shape::rows, at_once); ++n)
                if (Shape::rows % at_once == 0 || n * at_once + threadIdx.x / 8 < Shape::rows)
                    start_copy_once(to + group * group_bytes + n * at_once * row_bytes,
                                    from + rows_[n] + group * row_bytes,
                                    n * at_once + threadIdx.x / 8 < share_.rows);
        }
        end_copies();
        started_ ^= 1;
    }
    // The oldest stage has arrived for all threads, and they have read the one before.
    __device__ __forceinline__ void wait() {
        wait_for_copies<0>();
        show_to_products();
        __syncthreads();
        read_ = started_ ^ 1;
    }

    // Terms of rows from 8j on, of a group of the stage and of a product.
    __device__ __forceinline__ const char* columns(unsigned group, unsigned j,
                                                   unsigned product) const {
        return shared_ + read_ * stage_bytes + group * group_bytes + j * 8 * row_bytes +
               product * 32;
    }

private:
    const StripShare<Shape>& share_;
    char* const shared_;
    const int64_t stride_;  // in bytes, from a row to the next
    const char* from_;
    uint32_t rows_[quotient_up(Shape::rows, Shape::threads / 8)];
    uint32_t to_;
    unsigned started_ = 0, read_ = 0;
};

}  // namespace
}  // namespace twinkle_pack::cuda
