#pragma once
// y = x W^T + bias for weights packed in 8 or 4 bits, for many rows of x: as fast as tensor cores
// multiply by what registers give them.
//
// As in bits_tiles.h a lane unpacks weights, exactly, in registers. Of x a group of all rows lies
// in shared memory, by which the warps of a block, each with outputs of its own, multiply at the
// same time.

#include "cuda/bits_inbox.h"
#include "cuda/bits_pairs.h"
#include "cuda/bits_rows.h"
#include "cuda/launching.h"

namespace twinkle_pack::cuda {
namespace {

// Reads a warp's groups, one after the other, over the borders of passes.
template <class Shape>
class StripReader {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ StripReader(const BitsArguments& a, const StripShare<Shape>& share,
                                           unsigned warp)
        : a_(a), share_(share), warp_(warp) {
        enter(0);
    }

    __device__ __forceinline__ void start(StripPart<W>& part) {
        if (!weight_) return;
#pragma unroll
        for (unsigned i = 0; i < W::loads; ++i)
            part.words[i] =
                load_once(reinterpret_cast<const uint4*>(weight_ + i * strip_load_step));
        part.scales = load_cached(reinterpret_cast<const uint4*>(scales_));
        group_ += parts_;
        weight_ += parts_ * W::step;
        scales_ += parts_ * block_outputs;
        if (group_ >= share_.groups) enter(next_tile_);
    }

    // What is read first: to the cache, also if an earlier kernel writes it. A lane brings what is
    // of a block of outputs.
    __device__ __forceinline__ void bring(uint32_t count) const {
        if (!weight_ || threadIdx.x % 16 != 0 || (threadIdx.x % 32 != 0 && !whole_)) return;
        const uint32_t left = share_.groups - group_;
        bring_to_cache(weight_, (left < count ? left : count) * W::step);
    }

private:
    // The first pass from this tile on in which the warp has a group.
    __device__ __forceinline__ void enter(uint32_t first_tile) {
        weight_ = nullptr;
        while (first_tile < share_.tiles) {
            const StripPass pass = StripPass::of<Shape>(first_tile, share_.tiles);
            const uint32_t tile = warp_ % pass.width;
            first_tile = next_tile_ = pass.first_tile + pass.tiles;
            group_ = warp_ / pass.width;
            if (tile >= pass.tiles || group_ >= pass.parts || group_ >= share_.groups) continue;
            parts_ = pass.parts;
            find(pass.first_tile + tile);
            return;
        }
    }
    __device__ __forceinline__ void find(uint32_t tile) {
        const unsigned g = threadIdx.x % 32 / 4;
        const uint64_t output = share_.first_output + tile * tile_outputs;
        const uint64_t group = share_.first_group + group_;
        whole_ = share_.outputs_of(tile) > block_outputs;
        weight_ = a_.weight + output * a_.row_bytes + group * W::step +
                  strip_lane_at<W>(a_.row_bytes, whole_);
        scales_ = a_.scales + (output + (whole_ ? g / 4 * block_outputs : 0)) * a_.scale_groups +
                  group * block_outputs + g % 4 * 4;
    }

    const BitsArguments& a_;
    const StripShare<Shape>& share_;
    const unsigned warp_;
    const char* weight_ = nullptr;  // null: nothing left
    const float* scales_ = nullptr;
    uint32_t next_tile_ = 0, group_ = 0, parts_ = 1;
    bool whole_ = true;
};

// What a warp adds up in a pass, of 32 outputs and all rows, in steps of 16 outputs and 64 rows.
// The products of a step are added when those of the next have been started.
template <class T, class Shape>
class StripTiles {
    using W = typename Shape::Weights;
    static constexpr unsigned steps = Shape::across / 8;

public:
    Tile tiles[2][steps][8] = {};

    // += a group of W, by a group of the stage of x. The next is read once this is unpacked. Four
    // warps multiply together, of which some may have no tile: then the pass is the last one, and
    // what they multiply is not sent.
    __device__ __forceinline__ void multiply(StripPart<W>& part, StripReader<Shape>& reader,
                                             bool has_tile, const StripPairs<W>& pairs,
                                             const StripRows<Shape>& x, unsigned group) {
        uint32_t factors[2][4][4];
        Tile sums[2][8];
        pairs.exchange(part);
        pairs.template unpack<T>(factors[0], part, 0);
        start<0>(sums[0], factors[0], x, group);
        if constexpr (steps == 2) start<1>(sums[1], factors[0], x, group);
        const uint4 scales = part.scales;
        // Where registers are enough, two steps of different outputs are under way.
        constexpr bool both = steps == 1 && Shape::teams <= 2;
        if constexpr (!both) {
            if constexpr (steps == 2) add<0, 1>(sums[0], scales.x, scales.y);
            add<steps - 1, 0>(sums[steps - 1], scales.x, scales.y);
        }
        pairs.template unpack<T>(factors[1], part, 1);
        start<steps>(sums[both ? 1 : 0], factors[1], x, group);
        if constexpr (steps == 2) start<3>(sums[1], factors[1], x, group);
        if (has_tile) reader.start(part);
        if constexpr (both) add<0, 1>(sums[0], scales.x, scales.y);
        if constexpr (steps == 2) add<2, 1>(sums[0], scales.z, scales.w);
        add<2 * steps - 1, 0>(sums[both || steps == 2 ? 1 : 0], scales.z, scales.w);
    }

private:
    template <unsigned step>
    __device__ __forceinline__ void start(Tile (&sums)[8], const uint32_t (&factors)[4][4],
                                          const StripRows<Shape>& x, unsigned group) {
        before_products();
#pragma unroll
        for (unsigned i = 0; i < 4; ++i)
            start_products(sums, factors[i], x.columns(group, step % steps * 8, i), i > 0, T());
        end_products();
    }
    template <unsigned step, int pending>
    __device__ __forceinline__ void add(Tile (&sums)[8], uint32_t scale, uint32_t scale_below) {
        wait_for_products<pending>(sums);
#pragma unroll
        for (unsigned k = 0; k < 32; ++k) {
            float& to = tiles[step / steps][step % steps][k / 4].at[k % 4];
            to = fmaf(sums[k / 4].at[k % 4], as_float(k % 4 < 2 ? scale : scale_below), to);
        }
    }
};

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) bits_strips(BitsArguments a) {
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)  // see bits_strip_ways.h
    using W = typename Shape::Weights;
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const StripShare<Shape> share(a, rank);
    char* const shared = shared_memory();
    StripRows<Shape> x(a, share, shared);
    StripInbox<Shape> inbox(a, share, rank,
                            reinterpret_cast<float*>(shared + 2 * StripRows<Shape>::stage_bytes));
    // Shuffled, so that the compiler knows branches on it to be the same for all of a warp.
    const unsigned warp = shuffle_first(threadIdx.x / 32, 32);
    StripReader<Shape> reader(a, share, warp);
    if (a.early_groups > 0) reader.bring(a.early_groups);
    wait_for_earlier();
    let_next_begin();

    const StripPairs<W> pairs;
    StripPart<W> part{};
    reader.start(part);
    x.start(0);
    for (uint32_t tile = 0; tile < share.tiles;) {
        const StripPass pass = StripPass::of<Shape>(tile, share.tiles);
        const unsigned first = warp / pass.width;
        const bool has_part = first < pass.parts;
        const bool has_tile = has_part && warp % pass.width < pass.tiles;
        tile += pass.tiles;
        StripTiles<T, Shape> tiles;
        for (uint32_t done = 0; done < share.groups; done += Shape::stage) {
            x.wait();
            if (done + Shape::stage < share.groups)
                x.start(done + Shape::stage);
            else if (tile < share.tiles)
                x.start(0);
#pragma unroll 1
            for (unsigned i = first; has_part && i < Shape::stage && done + i < share.groups;
                 i += pass.parts)
                tiles.multiply(part, reader, has_tile, pairs, x, i);
        }
        inbox.exchange(T(), tiles.tiles, pass, has_tile, tile == share.tiles);
    }
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
