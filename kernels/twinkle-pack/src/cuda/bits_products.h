#pragma once
// y = x W^T + bias for weights packed in 8 or 4 bits, for many rows of x: as fast as tensor cores
// multiply by what registers give them.
//
// A lane unpacks weights from shared memory and multiplies them by their scales, in x's dtype: each
// weight is rounded, as where the weight is unpacked in memory, and so is its scale. So sums stay
// where tensor cores add them up. Teams of four warps wait for nothing but stages: while one
// unpacks, tensor cores multiply what others have.
//
// A warp has a block of 16 outputs, of which a lane has 2g and 2g + 1 (wgmma.h: rows g and g + 8).

#include "cuda/bits_stages.h"
#include "cuda/bits_weights.h"
#include "cuda/cluster.h"
#include "cuda/four.h"
#include "cuda/launching.h"
#include "cuda/pack.h"

namespace twinkle_pack::cuda {
namespace {

// A lane's weights of a group: four products' factors, before they are multiplied by their scales.
template <class T, class W>
struct ProductWeights {
    uint32_t words[4][4];
    uint32_t scale[2];  // twice each, of a lane's outputs

    // Of the warp's block.
    __device__ __forceinline__ void unpack(const char* weights, const char* scales) {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const uint2 both = *reinterpret_cast<const uint2*>(scales + g * 8);
        scale[0] = twice(as_float(both.x)), scale[1] = twice(as_float(both.y));
        // Of four terms a lane has the first two or the others.
        const uint32_t choice = t % 2 != 0 ? 0x3322 : 0x1100;
        constexpr unsigned quads = W::bytes_of_group / 4;
#pragma unroll
        for (unsigned q = 0; q < quads / 2; ++q) {
            const uint2 two =
                *reinterpret_cast<const uint2*>(weights + (2 * q + t / 2) * 64 + g * 8);
            const uint32_t bytes[2] = {chosen_bytes(two.x, two.x, choice),
                                       chosen_bytes(two.y, two.y, choice)};
#pragma unroll
            for (unsigned i = q / 2; i < 4; i += quads / 4)
#pragma unroll
                for (unsigned output = 0; output < 2; ++output)
                    words[i][q % 2 * 2 + output] = W::template pair_of_bytes<T>(bytes[output], i);
        }
    }
    // All words are unpacked before what follows.
    __device__ __forceinline__ void finish() {
#pragma unroll
        for (auto& product : words)
#pragma unroll
            for (uint32_t& word : product) forget(word);
    }
    // Of product i.
    __device__ __forceinline__ void factors(uint32_t (&to)[4], unsigned i) {
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) {
            forget(words[i][k]);  // so that it is multiplied here
            to[k] = multiply_pairs(words[i][k], scale[k % 2], T());
        }
    }

private:
    static __device__ __forceinline__ uint32_t twice(float number) {
        T both[2];
        from_floats(number, number, both);
        uint32_t bits;
        __builtin_memcpy(&bits, both, sizeof bits);
        return bits;
    }
};

// What a warp adds up: 16 outputs by 8 rows for each tile.
template <class T, class Shape>
struct ProductSums {
    using Weights = ProductWeights<T, typename Shape::Weights>;
    Tile tiles[Shape::across] = {};

    // += the next step. Its weights are unpacked while the step before is multiplied. Their factors
    // are made when that is done: the compiler waits after every product if others are under way.
    __device__ __forceinline__ void add(Stages<Shape>& stages) {
        const char* const stage = stages.wait();
        const unsigned first = threadIdx.x / 32 * Shape::groups;
        Weights weights[Shape::groups];
#pragma unroll
        for (unsigned i = 0; i < Shape::groups; ++i)
            weights[i].unpack(stage + Shape::weights_at + (first + i) * Shape::Weights::step,
                              stage + Shape::scales_at + (first + i) * Shape::scales_step);
#pragma unroll
        for (Weights& one : weights) one.finish();
        wait_for_products<0>(tiles);
        if (started_) stages.release();
        started_ = true;
        uint32_t factors[Shape::groups][4][4];
#pragma unroll
        for (unsigned i = 0; i < 4 * Shape::groups; ++i)
            weights[i / 4].factors(factors[i / 4][i % 4], i % 4);
        before_products();
#pragma unroll
        for (unsigned i = 0; i < 4 * Shape::groups; ++i)
            start_products(tiles, factors[i / 4][i % 4],
                           stage + i / 4 * Shape::rows * Shape::row_bytes + i % 4 * 32, true, T());
        end_products();
    }
    // All steps are done.
    __device__ __forceinline__ void finish() { wait_for_products<0>(tiles); }

private:
    bool started_ = false;
};

// Adds what the blocks of a cluster have summed up, in their order, and stores it. Each has some
// tiles of eight rows, which all send it, in place of the stages.
template <class T, class Shape>
class ProductInbox {
public:
    __device__ __forceinline__ ProductInbox(const BitsArguments& a,
                                            const ProductShare<Shape>& share, unsigned rank,
                                            char* shared)
        : a_(a), share_(share), rank_(rank), shared_(reinterpret_cast<float*>(shared)) {}

    __device__ __forceinline__ void exchange(const ProductSums<T, Shape>& sums) const {
        arrive_in_cluster();
        wait_for_cluster();  // stages have been read
        send(sums);
        arrive_in_cluster();
        wait_for_cluster();
        add_up();
    }
    // By threads that have no sums.
    static __device__ __forceinline__ void attend() {
        for (int i = 0; i < 2; ++i) {
            arrive_in_cluster();
            wait_for_cluster();
        }
    }
    // Of a cluster of one block.
    __device__ __forceinline__ void finish(const ProductSums<T, Shape>& sums) const {
#pragma unroll
        for (unsigned j = 0; j < Shape::across; ++j) {
            const float(&at)[4] = sums.tiles[j].at;
            finish(j, Four::of(at[0], at[1], at[2], at[3]));
        }
    }

private:
    static_assert(Shape::across % 8 == 0 && Shape::across * Shape::warps * 512 <= Shape::bytes);

    __device__ __forceinline__ void send(const ProductSums<T, Shape>& sums) const {
        const unsigned each = Shape::across >> a_.cluster_bits;
#pragma unroll
        for (unsigned j = 0; j < Shape::across; ++j) {
            if (j * 8 >= share_.rows) break;
            const float(&at)[4] = sums.tiles[j].at;
            const unsigned to = (j << a_.cluster_bits) / Shape::across;
            store_in_block(to, place(rank_, j - to * each),
                           Four::of(at[0], at[1], at[2], at[3]).words);
        }
    }
    __device__ __forceinline__ void add_up() const {
        const unsigned each = Shape::across >> a_.cluster_bits;
        for (unsigned j = 0; j < each; ++j) {
            Four sum = Four::at(place(0, j));
            for (unsigned rank = 1; rank < 1u << a_.cluster_bits; ++rank)
                sum.add(Four::at(place(rank, j)));
            finish(rank_ * each + j, sum);
        }
    }
    // Of a lane, for what a block sends.
    __device__ __forceinline__ float* place(unsigned from_rank, unsigned j) const {
        const unsigned each = Shape::across >> a_.cluster_bits;
        return shared_ + ((from_rank * each + j) * Shape::readers + threadIdx.x) * 4;
    }
    __device__ __forceinline__ void finish(unsigned j, const Four& sums) const {
        const unsigned warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4;
        if (warp >= share_.blocks) return;
        const uint32_t output = share_.first_output + warp * block_outputs + 2 * g;
        float bias[2] = {};
        if (a_.bias)
            for (unsigned i = 0; i < 2; ++i)
                bias[i] = to_float(static_cast<const T*>(a_.bias)[output + i]);
#pragma unroll
        for (unsigned i = 0; i < 2; ++i) {
            const uint32_t row = j * 8 + threadIdx.x % 4 * 2 + i;
            if (row >= share_.rows) return;
            const float two[2] = {sums.number(i) + bias[0], sums.number(i + 2) + bias[1]};
            store(static_cast<T*>(a_.y) + uint64_t{share_.first_row + row} * a_.outputs + output,
                  packed<T>(two));
        }
    }

    const BitsArguments& a_;
    const ProductShare<Shape>& share_;
    const unsigned rank_;
    float* const shared_;
};

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) bits_products(BitsArguments a) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)  // see bits_strip_ways.h
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const ProductShare<Shape> share(a, rank);
    __shared__ StageBarriers<Shape> barriers;
    char* const shared = shared_memory();
    const bool reads = threadIdx.x < Shape::readers;
    if (threadIdx.x == 0) barriers.prepare();
    StageSupply<Shape> supply(a, share, shared, barriers);
    if (!reads && a.early_groups > 0) supply.bring(a);
    __syncthreads();
    wait_for_earlier();
    let_next_begin();

    if (reads) {
        take_registers<Shape::registers>();
        Stages<Shape> stages(shared, barriers);
        ProductSums<T, Shape> sums;
#pragma unroll 1
        for (uint32_t step = 0; step < share.steps; ++step) sums.add(stages);
        sums.finish();
        const ProductInbox<T, Shape> inbox(a, share, rank, shared);
        if (a.cluster_bits > 0)
            inbox.exchange(sums);
        else
            inbox.finish(sums);
    } else {
        leave_registers<Shape::supplier_registers>();
        supply.run();
        if (a.cluster_bits > 0) ProductInbox<T, Shape>::attend();
    }
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
