#pragma once
// y = x W^T + bias for weights packed in 8 or 4 bits in blocks of outputs, for one row of x: to
// arrange more in shared memory takes longer than is saved.
//
// As in bits_tiles.h a warp has groups of its own, one after the other. Here the copy engine brings
// them to shared memory, some at a time: what is under way depends neither on registers nor on how
// long a warp computes. x lies there, too, as tensor cores take it, and so does the sum of each of
// its groups, which makes good what weights have in addition.

#include "cuda/async_copy.h"
#include "cuda/bits_few_sums.h"
#include "cuda/bits_weights.h"
#include "cuda/launching.h"

namespace twinkle_pack::cuda {
namespace {

// Up to `across` times 8 rows of x. Each warp has place for `stages` of up to `groups` groups.
template <class W, int across_, int warps_, int groups_, int stages_>
struct SupplyShape {
    using Weights = W;
    static constexpr unsigned across = across_, warps = warps_, threads = warps * 32;
    static constexpr unsigned groups = groups_, stages = stages_, resident = 1;
    static constexpr unsigned scales_step = block_outputs * sizeof(float);  // of a block's group
    static constexpr unsigned scales_at = 2 * groups * W::step;             // in a stage
    static constexpr unsigned stage_bytes = scales_at + 2 * groups * scales_step;
    static constexpr unsigned ring_bytes = warps * stages * stage_bytes;
};

// Brings a warp's groups, one after the other. Of a tile there are four arrays, each copied by a
// lane: values and scales of its two blocks of outputs.
template <class Shape>
class BitsSupply {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ BitsSupply(const BitsArguments& a, const BitsShare<Shape>& share,
                                          const BitsPath& path, char* ring,
                                          ByteBarrier (&deliveries)[Shape::warps][Shape::stages])
        : share_(share),
          deliveries_(deliveries[threadIdx.x / 32]),
          ring_(ring + threadIdx.x / 32 * Shape::stages * Shape::stage_bytes),
          left_(path.count) {
        const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
        const bool of_scales = lane / 2 % 2 != 0;
        block_ = lane % 2;
        step_ = of_scales ? Shape::scales_step : W::step;
        to_ = block_ * Shape::groups * step_ + (of_scales ? Shape::scales_at : 0);
        array_ = of_scales ? reinterpret_cast<const char*>(a.scales) : a.weight;
        output_bytes_ = of_scales ? a.scale_groups * sizeof(float) : a.row_bytes;
        words_ = g / 4 * Shape::groups * W::step + t * 64 + g % 4 * 16;
        scales_ = Shape::scales_at + g / 4 * Shape::groups * Shape::scales_step + g % 4 * 16;
        if (left_ > 0) enter(path.tile, path.group);
        if (lane < Shape::stages) deliveries_[lane].prepare();
    }

    // Of the first tile, what is read first: to the cache, also if an earlier kernel writes it.
    __device__ __forceinline__ void bring(uint32_t count) const {
        if (left_ < count) count = left_;
        if (left_in_tile_ < count) count = left_in_tile_;
        if (copies_ && count > 0) bring_to_cache(from_, count * step_);
    }

    // The next stage, if any. Before it all lanes have read what it takes the place of.
    __device__ __forceinline__ void start() {
        if (left_ == 0) return;
        uint32_t count = left_in_tile_ < left_ ? left_in_tile_ : left_;
        if (count > Shape::groups) count = Shape::groups;
        ByteBarrier& delivery = deliveries_[started_];
        if (threadIdx.x % 32 == 0)
            delivery.expect((whole_ ? 2 : 1) * count * (W::step + Shape::scales_step));
        if (copies_)
            delivery.start_copy(ring_ + started_ * Shape::stage_bytes + to_, from_, count * step_);
        if (++started_ == Shape::stages) started_ = 0;
        from_ += count * step_;
        left_ -= count;
        left_in_tile_ -= count;
        if (left_in_tile_ == 0 && left_ > 0) enter(tile_ + 1, 0);
    }

    // The oldest stage has arrived.
    __device__ __forceinline__ void wait() const { deliveries_[read_].wait(odd_); }
    // Of that stage, a lane's part of a group.
    __device__ __forceinline__ void read(uint4 (&words)[W::loads], uint4& scales,
                                         unsigned group) const {
        const char* const stage = ring_ + read_ * Shape::stage_bytes;
#pragma unroll
        for (unsigned i = 0; i < W::loads; ++i)
            words[i] =
                *reinterpret_cast<const uint4*>(stage + words_ + group * W::step + i * 4 * 64);
        scales = *reinterpret_cast<const uint4*>(stage + scales_ + group * Shape::scales_step);
    }
    // It is done with.
    __device__ __forceinline__ void release() {
        if (++read_ == Shape::stages) read_ = 0, odd_ = !odd_;
    }

private:
    __device__ __forceinline__ void enter(uint32_t tile, uint32_t group_of_block) {
        const uint64_t output = share_.first_output + tile * tile_outputs + block_ * block_outputs;
        const uint64_t group = share_.first_group + group_of_block;
        tile_ = tile;
        left_in_tile_ = share_.groups - group_of_block;
        whole_ = share_.outputs_of(tile) > block_outputs;
        copies_ = threadIdx.x % 32 < 4 && (whole_ || block_ == 0);
        from_ = array_ + output * output_bytes_ + group * step_;
    }

    const BitsShare<Shape>& share_;
    ByteBarrier (&deliveries_)[Shape::stages];
    char* const ring_;
    uint32_t words_, scales_;  // where the lane reads, in a stage
    // The lane's array, and where its copies go in a stage.
    const char *array_, *from_ = nullptr;
    uint32_t output_bytes_, step_, to_;
    unsigned block_;
    uint32_t tile_ = 0, left_in_tile_ = 0, left_;  // of what is not started
    unsigned started_ = 0, read_ = 0;              // of the stages
    bool whole_ = true, copies_ = false, odd_ = false;
};

// The block's part of x in shared memory: of each group two halves, of each token, of each lane t
// the factors of two products. Product i has the terms 16 i + 4 t, + 2, + 1 and + 3. And for each
// group and each two tokens what a product's sums begin with: -offset times the sum of the terms.
template <class T, class Shape>
class BitsFactors {
    using W = typename Shape::Weights;
    static constexpr unsigned across = Shape::across, items = 8;  // of a group of a token
    static constexpr unsigned group_bytes = 64 * sizeof(T);       // of a token
    static constexpr bool has_offset = W::template offset_of<T>() != 0;

public:
    static __device__ __host__ constexpr uint64_t bytes(uint64_t groups, uint64_t tokens) {
        return groups * (tokens * group_bytes + (has_offset ? across * 4 * sizeof(Tile) : 0));
    }

    __device__ __forceinline__ BitsFactors(const BitsArguments& a, const BitsShare<Shape>& share,
                                           char* shared)
        : a_(a),
          share_(share),
          shared_(shared),
          begins_(
              reinterpret_cast<float*>(shared + uint64_t{share.groups} * a.tokens * group_bytes)) {}

    // By all threads. What `meanwhile` starts is behind what is read of x first, which would wait
    // for it otherwise.
    template <class F>
    __device__ __forceinline__ void fill(const F& meanwhile) {
        constexpr unsigned at_once = 4;
        const uint32_t all = share_.groups * a_.tokens * items;
        uint32_t at = threadIdx.x;
        do {
            uint4 item[at_once];
#pragma unroll
            for (unsigned i = 0; i < at_once; ++i)
                if (at + i * Shape::threads < all) item[i] = read_item(at + i * Shape::threads);
            if (at == threadIdx.x) meanwhile();
#pragma unroll
            for (unsigned i = 0; i < at_once; ++i) put_item(item[i], at + i * Shape::threads, all);
            at += at_once * Shape::threads;
        } while (at - threadIdx.x % 32 < all);  // whole warps
    }

    // A lane's, for all products of a group.
    struct Group {
        uint4 words[across][2];
        Tile begin[across];
    };
    __device__ __forceinline__ Group read(uint32_t group) const {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        Group read;
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            // Of tokens that are not there the last one's are taken: nothing of them is stored.
            const uint32_t token = j * 8 + g < a_.tokens ? j * 8 + g : a_.tokens - 1;
#pragma unroll
            for (unsigned half = 0; half < 2; ++half)
                read.words[j][half] =
                    *reinterpret_cast<const uint4*>(place_of(group, half, token, t));
            if constexpr (has_offset)
                read.begin[j] = *reinterpret_cast<const Tile*>(begin_of(group, j * 8 + 2 * t));
            else
                read.begin[j] = {};
        }
        return read;
    }

private:
    struct Item {
        uint32_t group, token, half, t;
    };
    __device__ __forceinline__ Item item_of(uint32_t at) const {
        const uint32_t row = at / items, group = a_.tokens == 1 ? row : row / a_.tokens;
        return {group, row - group * a_.tokens, at % items / 4, at % 4};
    }
    __device__ __forceinline__ char* place_of(uint32_t group, uint32_t half, uint32_t token,
                                              uint32_t t) const {
        return shared_ + ((group * 2 + half) * a_.tokens + token) * 64 + t * 16;
    }
    __device__ __forceinline__ float* begin_of(uint32_t group, uint32_t token) const {
        return begins_ + (group * across * 8 + token) * 2;
    }

    // Four terms of a product and four of the next.
    __device__ __forceinline__ uint4 read_item(uint32_t at) const {
        const Item item = item_of(at);
        const uint64_t groups = a_.row_bytes / W::bytes_of_group;
        const char* const from =
            a_.x + (item.token * groups + share_.first_group + item.group) * group_bytes +
            (item.half * 32 + item.t * 4) * sizeof(T);
        const uint2 low = *reinterpret_cast<const uint2*>(from);
        const uint2 high = *reinterpret_cast<const uint2*>(from + 16 * sizeof(T));
        return {low.x, low.y, high.x, high.y};
    }
    // By whole warps, of which lanes add up what they have.
    __device__ __forceinline__ void put_item(const uint4& item, uint32_t at, uint32_t all) {
        const Item to = item_of(at);
        if (at < all)
            store_wide(reinterpret_cast<uint4*>(place_of(to.group, to.half, to.token, to.t)),
                       {halves(item.x, item.y, true), halves(item.x, item.y, false),
                        halves(item.z, item.w, true), halves(item.z, item.w, false)});
        if constexpr (has_offset) {
            float sum = at < all
                            ? (sum_of(item.x) + sum_of(item.y)) + (sum_of(item.z) + sum_of(item.w))
                            : 0;
            for (unsigned mask = 1; mask < items; mask *= 2) sum += shuffle_xor(sum, mask);
            // Twice, since a lane has two rows of each token.
            if (at < all && at % items < 2)
                begin_of(to.group, to.token / 2 * 2)[at % items * 2 + to.token % 2] =
                    -W::offset * sum;
        }
    }
    static __device__ __forceinline__ float sum_of(uint32_t pair) {
        return to_float(T{static_cast<uint16_t>(pair)}) +
               to_float(T{static_cast<uint16_t>(pair >> 16)});
    }

    const BitsArguments& a_;
    const BitsShare<Shape>& share_;
    char* const shared_;
    float* const begins_;
};

// tiles += a group of W, by the same of x.
template <class T, class W, unsigned across, class Factors>
__device__ __forceinline__ void multiply_group(Tile (&tiles)[2][across],
                                               const uint4 (&words)[W::loads], const uint4& scales,
                                               const Factors& x) {
    Tile sums[2][across];
#pragma unroll
    for (unsigned m = 0; m < 2; ++m)
#pragma unroll
        for (unsigned j = 0; j < across; ++j) sums[m][j] = x.begin[j];
#pragma unroll
    for (unsigned i = 0; i < W::products; ++i)
#pragma unroll
        for (unsigned m = 0; m < 2; ++m) {
            uint32_t factors[2][2];
#pragma unroll
            for (unsigned k = 0; k < 4; ++k)
                factors[k / 2][k % 2] = W::template pair_of<T>(words, i, m, k / 2, k % 2);
#pragma unroll
            for (unsigned j = 0; j < across; ++j)
                multiply_words(sums[m][j], factors[0][0], factors[1][0], factors[0][1],
                               factors[1][1], word_of(x.words[j][i / 2], i % 2 * 2),
                               word_of(x.words[j][i / 2], i % 2 * 2 + 1), T());
        }
#pragma unroll
    for (unsigned m = 0; m < 2; ++m)
#pragma unroll
        for (unsigned j = 0; j < across; ++j)
#pragma unroll
            for (unsigned r = 0; r < 4; ++r)
                tiles[m][j].at[r] = fmaf(sums[m][j].at[r], as_float(word_of(scales, 2 * m + r / 2)),
                                         tiles[m][j].at[r]);
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) bits_supplied(BitsArguments a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // see serves() in bits_linear.cu
    using W = typename Shape::Weights;
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const BitsShare<Shape> share(a, rank);
    __shared__ Arrivals arrivals;
    __shared__ ByteBarrier deliveries[Shape::warps][Shape::stages];
    char* const shared = shared_memory();
    BitsFactors<T, Shape> x(a, share, shared + Shape::ring_bytes);
    BitsFewSums<T, Shape> result(
        a, share, rank, reinterpret_cast<float*>(shared + Shape::ring_bytes + a.factor_bytes));
    result.prepare(arrivals);
    // Shuffled, so that the compiler knows branches on it to be the same for all of a warp.
    const BitsPath path = share.path(shuffle_first(threadIdx.x / 32, 32));
    BitsSupply<Shape> weights(a, share, path, shared, deliveries);
    weights.bring(a.early_groups);
    if (a.early_groups > 0) result.bring_ends();
    meet_warp();
    wait_for_earlier();
    let_next_begin();

    result.read_ends();
    x.fill([&] {
        for (unsigned i = 0; i < Shape::stages; ++i) weights.start();
    });
    __syncthreads();
    Tile tiles[2][Shape::across] = {};
    uint32_t tile = path.tile, group = path.group;
    for (uint32_t left = path.count; left > 0;) {
        uint32_t count = share.groups - group < left ? share.groups - group : left;
        if (count > Shape::groups) count = Shape::groups;
        weights.wait();
#pragma unroll
        for (unsigned i = 0; i < Shape::groups; ++i) {
            if (i >= count) break;
            uint4 words[W::loads], scales;
            weights.read(words, scales, i);
            multiply_group<T, W>(tiles, words, scales, x.read(group + i));
        }
        meet_warp();
        weights.release();
        weights.start();
        left -= count;
        group += count;
        if (group < share.groups && left > 0) continue;
        result.put(tiles, tile++);
#pragma unroll
        for (auto& row : tiles)
#pragma unroll
            for (Tile& one : row) one = {};
        group = 0;
    }
    if (a.cluster_bits > 0) wait_for_cluster();
    result.finish();
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
