#pragma once
// y = x W^T + bias for weights packed in 8 or 4 bits, for few rows of x: as fast as W can be read.
//
// Like linear_tiles.h, but W goes from memory straight to the registers of the lane that multiplies
// by it, some groups ahead. There it becomes 16-bit numbers, exactly, which tensor cores multiply
// by x in its own dtype, float32 as the sum of two bfloat16; sums are of float32.

#include "cuda/async_copy.h"
#include "cuda/bits_weights.h"
#include "cuda/launching.h"
#include "cuda/linear_sums.h"

namespace twinkle_pack::cuda {
namespace {

struct BitsArguments : LinearArguments {
    const float* scales;
    uint32_t groups;  // that have scales of their own; 0: each output has one
};

// `depth`: groups that are read ahead.
template <class W, int across_, int output_warps_, int inner_warps_, int depth_>
struct BitsShape : TileShape<2, across_, output_warps_, inner_warps_> {
    using Tiles = TileShape<2, across_, output_warps_, inner_warps_>;
    using Weights = W;
    static constexpr unsigned depth = depth_;
    static constexpr unsigned outputs_apart = 16;  // a block of W
    static constexpr unsigned row_bytes = Tiles::inner_warps * W::bytes_of_group;

    static constexpr unsigned shared_bytes(bool clustered) {
        return Tiles::sums_bytes + (clustered ? Tiles::inbox_bytes : 0);
    }
    static __device__ __forceinline__ unsigned output_at(unsigned m, unsigned half, unsigned g) {
        return W::output_at(m, half, g);
    }
};

template <class T>
__device__ __forceinline__ void store_result(const BitsArguments& a, uint32_t output,
                                             uint32_t token, float sum) {
    if (a.groups == 0) sum *= a.scales[output];
    if (a.bias) sum += to_float(static_cast<const T*>(a.bias)[output]);
    static_cast<T*>(a.y)[uint64_t{token} * a.outputs + output] = rounded<T>(sum);
}

// A lane's part of a group.
template <class W>
struct BitsPart {
    uint4 words[W::loads];
    uint4 scales;  // of its four outputs, if groups have their own
};

// Reads a warp's groups, pass after pass.
template <class Shape>
class BitsReader {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ BitsReader(const BitsArguments& a, const LinearShare<Shape>& share)
        : a_(a), share_(share), output_(share.first_output), stage_(0) {
        const unsigned warp = threadIdx.x / 32;
        first_group_ = share.first_byte / W::bytes_of_group + warp % Shape::inner_warps;
        offset_ = warp / Shape::inner_warps * Shape::warp_outputs;
        // Passes have as many stages as are read ahead, or a multiple of it: some read nothing.
        stages_ = (share.stages + Shape::depth - 1) / Shape::depth * Shape::depth;
    }

    __device__ __forceinline__ bool has(uint32_t stage) const {
        return stage < share_.stages && group_of(stage) < groups();
    }
    __device__ __forceinline__ uint32_t group_of(uint32_t stage) const {
        return first_group_ + stage * Shape::inner_warps;
    }

    __device__ __forceinline__ void start(BitsPart<W>& part) {
        if (output_ >= share_.end_output) return;
        if (has(stage_) && output_ + offset_ < share_.pass_end(output_))
            read(part, group_of(stage_));
        if (++stage_ == stages_) {
            stage_ = 0;
            output_ += share_.pass_outputs;
        }
    }

private:
    __device__ __forceinline__ uint32_t groups() const {
        return a_.inner_bytes / W::bytes_of_group;
    }
    __device__ __forceinline__ void read(BitsPart<W>& part, uint32_t group) const {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const uint32_t output = output_ + offset_;
        const char* const from = a_.weight + uint64_t{output} * a_.inner_bytes;
#pragma unroll
        for (unsigned i = 0; i < W::loads; ++i)
            if (output + W::first_output_of(i, g) < a_.outputs)
                part.words[i] = load_once(reinterpret_cast<const uint4*>(
                    from + W::load_at(i, g, t, group, a_.inner_bytes)));
        if constexpr (W::grouped)
            if (output + W::first_output_of(0, g) < a_.outputs)
                part.scales = load_cached(reinterpret_cast<const uint4*>(
                    a_.scales + uint64_t{output + g / 4 * 16} * a_.groups + group * 16 +
                    g % 4 * 4));
    }

    const BitsArguments& a_;
    const LinearShare<Shape>& share_;
    uint32_t output_, stage_, stages_, first_group_, offset_;
};

// Eight terms of x of a lane's token, for two products.
template <class T>
struct BitsTerms {
    using Factor = T;
    uint4 words;

    __device__ __forceinline__ explicit BitsTerms(const char* from)
        : words(*reinterpret_cast<const uint4*>(from)) {}
    __device__ __forceinline__ void multiply_by(Tile& tile, const uint32_t (&a)[2][2],
                                                bool second) const {
        const uint32_t low = second ? words.z : words.x, high = second ? words.w : words.y;
        multiply_words(tile, a[0][0], a[1][0], a[0][1], a[1][1], halves(low, high, true),
                       halves(low, high, false), T());
    }
};
// As what 16 of their bits say and, rounded, the rest: 16 of 24 bits.
template <>
struct BitsTerms<float> {
    using Factor = BFloat16;
    uint4 four[2];

    __device__ __forceinline__ explicit BitsTerms(const char* from)
        : four{reinterpret_cast<const uint4*>(from)[0], reinterpret_cast<const uint4*>(from)[1]} {}
    __device__ __forceinline__ void multiply_by(Tile& tile, const uint32_t (&a)[2][2],
                                                bool second) const {
        const uint4& words = four[second ? 1 : 0];
        multiply_words(tile, a[0][0], a[1][0], a[0][1], a[1][1], rests(words.x, words.z),
                       rests(words.y, words.w), Factor());
        multiply_words(tile, a[0][0], a[1][0], a[0][1], a[1][1], halves(words.x, words.z, false),
                       halves(words.y, words.w, false), Factor());
    }

private:
    static __device__ __forceinline__ float rest(uint32_t bits) {
        return as_float(bits) - as_float(bits & 0xffff0000u);
    }
    static __device__ __forceinline__ uint32_t rests(uint32_t low, uint32_t high) {
        BFloat16 both[2];
        from_floats(rest(low), rest(high), both);
        return uint32_t{both[1].bits} << 16 | both[0].bits;
    }
};

// tiles += a group of W, by x from this group on. Of tokens that are not there the last one's are
// taken: nothing of them is stored.
template <class T, class W, unsigned across>
__device__ __forceinline__ void multiply_group(Tile (&tiles)[2][across], const BitsPart<W>& part,
                                               const BitsArguments& a, uint32_t group) {
    const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const uint64_t row = uint64_t{a.inner_bytes / W::bytes_of_group} * 64 * sizeof(T);
    const char* const x = a.x + uint64_t{group} * 64 * sizeof(T);
    Tile sums[2][across] = {};
#pragma unroll
    for (unsigned i = 0; i < 4; i += 2) {
        using Factor = typename BitsTerms<T>::Factor;
        uint32_t factors[2][2][2][2];
#pragma unroll
        for (unsigned k = 0; k < 16; ++k)
            factors[k / 8][k / 4 % 2][k / 2 % 2][k % 2] =
                W::template pair_of<Factor>(part.words, i + k / 8, k / 4 % 2, k / 2 % 2, k % 2);
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            const uint32_t token = j * 8 + g < a.tokens ? j * 8 + g : a.tokens - 1;
            const BitsTerms<T> terms(x + token * row + W::depth_at(i, t) * sizeof(T));
#pragma unroll
            for (unsigned k = 0; k < 4; ++k)
                terms.multiply_by(sums[k % 2][j], factors[k / 2][k % 2], k / 2 != 0);
        }
    }
#pragma unroll
    for (unsigned m = 0; m < 2; ++m)
#pragma unroll
        for (unsigned j = 0; j < across; ++j)
#pragma unroll
            for (unsigned r = 0; r < 4; ++r)
                if constexpr (W::grouped)
                    tiles[m][j].at[r] =
                        fmaf(sums[m][j].at[r], as_float(word_of(part.scales, 2 * m + r / 2)),
                             tiles[m][j].at[r]);
                else
                    tiles[m][j].at[r] += sums[m][j].at[r];
}

// Of the first outputs, what the block reads first (see linear_tiles.h).
template <class Shape>
__device__ __forceinline__ void bring_bits(const BitsArguments& a,
                                           const LinearShare<Shape>& share) {
    using W = typename Shape::Weights;
    const uint32_t left = share.first_byte < a.inner_bytes ? a.inner_bytes - share.first_byte : 0;
    const uint32_t bytes = a.early_bytes < left ? a.early_bytes : left;
    if (bytes == 0) return;
    const uint32_t at_once = W::grouped ? 16 : 1;  // outputs whose bytes lie together
    for (uint32_t output = share.first_output + threadIdx.x * at_once;
         output < share.pass_end(share.first_output); output += Shape::threads * at_once)
        bring_to_cache(a.weight + uint64_t{output} * a.inner_bytes + share.first_byte * at_once,
                       bytes * at_once);
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) bits_tiles(BitsArguments a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // see serves() in bits_linear.cu
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const LinearShare<Shape> share(a, rank);
    if (a.cluster_bits > 0) arrive_in_cluster();
    bring_bits(a, share);
    wait_for_earlier();
    let_next_begin();

    BitsReader<Shape> reader(a, share);
    BitsPart<typename Shape::Weights> ring[Shape::depth];
#pragma unroll
    for (unsigned i = 0; i < Shape::depth; ++i) reader.start(ring[i]);
    if (a.cluster_bits > 0) wait_for_cluster();

    float* const sums = reinterpret_cast<float*>(shared_memory());
    LinearSums<T, Shape, BitsArguments> result{a, share, sums, sums + Shape::sums_bytes / 4, rank};
    for (uint32_t output = share.first_output; output < share.end_output;
         output += share.pass_outputs) {
        Tile tiles[2][Shape::across] = {};
        for (uint32_t stage = 0; stage < share.stages; stage += Shape::depth)
#pragma unroll
            for (unsigned i = 0; i < Shape::depth; ++i) {
                if (reader.has(stage + i))
                    multiply_group<T>(tiles, ring[i], a, reader.group_of(stage + i));
                reader.start(ring[i]);
            }
        result.add(tiles, output, output + share.pass_outputs >= share.end_output);
    }
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
