#pragma once
// The same as bits_sums.h, for few rows of x, where what follows the last product counts as much as
// reading: the threads that add know from where before they must, and what other blocks send is
// waited for by a barrier that counts it.
//
// With more rows this was slower: vectors that follow one another go to different blocks, and what
// is known early takes registers.

#include "cuda/async_copy.h"
#include "cuda/bits_sums.h"
#include "cuda/card.h"

namespace twinkle_pack::cuda {
namespace {

template <class T, class Shape>
class BitsFewSums : public BitsSums<T, Shape> {
    using Sums = BitsSums<T, Shape>;
    using W = typename Shape::Weights;
    using Sums::a_, Sums::share_, Sums::rank_, Sums::inbox_;

public:
    __device__ __forceinline__ BitsFewSums(const BitsArguments& a, const BitsShare<Shape>& share,
                                           unsigned rank, float* shared)
        : Sums(a, share, rank, shared),
          vectors_(share.tiles * a.tokens * vectors_of_tile),
          part_(part_of(vectors_, a.cluster_bits)),
          own_(part_of(vectors_ - rank, a.cluster_bits)) {}

    // Before an earlier kernel's end is waited for.
    __device__ __forceinline__ void prepare(Arrivals& arrivals) {
        arrivals_ = &arrivals;
        if (threadIdx.x < vectors_) origin_ = origin_of(threadIdx.x);
        if (a_.cluster_bits == 0) return;
        if (threadIdx.x == 0)
            arrivals.expect((own_ << a_.cluster_bits) * static_cast<uint32_t>(sizeof(Four)));
        arrive_in_cluster_empty();
    }
    // To the cache: what sums are multiplied by and what is added to them.
    __device__ __forceinline__ void bring_ends() const {
        constexpr unsigned line = 32;  // of float32
        for (uint32_t output = share_.first_output + threadIdx.x * line; output < share_.end_output;
             output += Shape::threads * line) {
            if (!W::grouped) bring_line_to_cache(a_.scales + output);
            if (a_.bias) bring_line_to_cache(static_cast<const T*>(a_.bias) + output);
        }
    }
    // After it, long before they are needed.
    __device__ __forceinline__ void read_ends() {
        if (threadIdx.x < own_) ends_ = ends_of(own_vector(threadIdx.x));
    }

    // By all threads, once all have put.
    __device__ __forceinline__ void finish() {
        __syncthreads();
        if (a_.cluster_bits == 0) {
            for (uint32_t at = threadIdx.x; at < vectors_; at += Shape::threads) {
                if (at != threadIdx.x) origin_ = origin_of(at), ends_ = ends_of(at);
                store(at, collect());
            }
            return;
        }
        for (uint32_t at = threadIdx.x; at < vectors_; at += Shape::threads) {
            if (at != threadIdx.x) origin_ = origin_of(at);
            const uint32_t cluster = 1u << a_.cluster_bits;
            arrivals_->send(at % cluster,
                            inbox_ + uint64_t{rank_ * part_ + (at >> a_.cluster_bits)} * 4,
                            collect().words);
        }
        arrivals_->wait();
        for (uint32_t at = threadIdx.x; at < own_; at += Shape::threads) {
            if (at != threadIdx.x) ends_ = ends_of(own_vector(at));
            const float* const from = inbox_ + uint64_t{at} * 4;
            Four sum = Four::at(from);
#pragma unroll
            for (unsigned i = 1; i < usual_cluster_blocks; ++i)
                if (i < 1u << a_.cluster_bits) sum.add(Four::at(from + uint64_t{i * part_} * 4));
            store(own_vector(at), sum);
        }
    }

private:
    // Every so many-th is added up by this block of the cluster.
    __device__ __forceinline__ uint32_t own_vector(uint32_t i) const {
        return (i << a_.cluster_bits) + rank_;
    }
    __device__ __forceinline__ uint32_t tile_of(uint32_t at) const {
        const uint32_t row = at / vectors_of_tile;
        return a_.tokens == 1 ? row : row / a_.tokens;
    }

    // What a vector's sums are multiplied by, and what is added.
    struct Ends {
        float scale[4], bias[4];
    };
    __device__ __forceinline__ Ends ends_of(uint32_t at) const {
        Ends ends{{1, 1, 1, 1}, {}};
        if (W::grouped && !a_.bias) return ends;
        const uint32_t tile = tile_of(at);
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            const uint32_t in_tile = W::output_at(i / 2, i % 2, at % vectors_of_tile);
            if (in_tile >= share_.outputs_of(tile)) continue;
            const uint32_t output = share_.first_output + tile * tile_outputs + in_tile;
            if (!W::grouped) ends.scale[i] = a_.scales[output];
            if (a_.bias) ends.bias[i] = to_float(static_cast<const T*>(a_.bias)[output]);
        }
        return ends;
    }

    // A vector's sums of the block: of so many warps, one after the other.
    struct Origin {
        const float* from;
        unsigned count;
    };
    __device__ __forceinline__ Origin origin_of(uint32_t at) const {
        const uint32_t tile = tile_of(at), token = at / vectors_of_tile - tile * a_.tokens;
        if (share_.groups == 0) return {inbox_, 0};
        const unsigned first = share_.warp_of(tile * share_.groups);
        const unsigned last = share_.warp_of((tile + 1) * share_.groups - 1);
        return {this->slot_of(first, tile) + token * token_pitch + at % vectors_of_tile * 4,
                last - first + 1};
    }
    __device__ __forceinline__ Four collect() const {
        Four sum = Four::of(0, 0, 0, 0);
#pragma unroll 4
        for (unsigned i = 0; i < origin_.count; ++i)
            sum.add(Four::at(origin_.from + uint64_t{i * a_.tokens} * token_pitch));
        return sum;
    }

    __device__ __forceinline__ void store(uint32_t at, const Four& sum) const {
        const uint32_t tile = tile_of(at), token = at / vectors_of_tile - tile * a_.tokens;
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) {
            const uint32_t in_tile = W::output_at(i / 2, i % 2, at % vectors_of_tile);
            if (in_tile >= share_.outputs_of(tile)) continue;
            const uint64_t output = share_.first_output + tile * tile_outputs + in_tile;
            const float product = W::grouped ? sum.number(i) : sum.number(i) * ends_.scale[i];
            static_cast<T*>(a_.y)[uint64_t{token} * a_.outputs + output] =
                rounded<T>(product + ends_.bias[i]);
        }
    }

    Arrivals* arrivals_ = nullptr;
    const uint32_t vectors_;     // of the cluster's sums
    const uint32_t part_, own_;  // of one block, at most, and of this one
    Origin origin_{};            // of the thread's first vector
    Ends ends_{};                // of the first one that it stores
};

template <class T, class Shape>
using SumsOf = std::conditional_t<has_few_rows<Shape>, BitsFewSums<T, Shape>, BitsSums<T, Shape>>;

}  // namespace
}  // namespace twinkle_pack::cuda
