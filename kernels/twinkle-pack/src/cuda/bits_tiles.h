#pragma once
// y = x W^T + bias for weights packed in 8 or 4 bits, for few rows of x: as fast as W can be read.
// One row mostly has another kernel, where weights lie in blocks (bits_supply.h).
//
// W goes from memory straight to the registers of the lane that multiplies by it, some groups
// ahead. There it becomes 16-bit numbers, exactly, which tensor cores multiply by x in its own
// dtype, float32 as the sum of two bfloat16; sums are of float32. Every instruction for each group
// counts: at 4 bits a multiprocessor has some 280 cycles for a warp's group of 2048 weights until
// memory brings the next one.

#include "cuda/async_copy.h"
#include "cuda/bits_few_sums.h"
#include "cuda/bits_weights.h"
#include "cuda/launching.h"

namespace twinkle_pack::cuda {
namespace {

// A lane's part of a group.
template <class W>
struct BitsPart {
    uint4 words[W::loads];
    uint4 scales;  // of its four outputs, if groups have their own
};

// Reads a warp's groups, one after the other.
template <class Shape>
class BitsReader {
    using W = typename Shape::Weights;

public:
    __device__ __forceinline__ BitsReader(const BitsArguments& a, const BitsShare<Shape>& share,
                                          const BitsPath& path)
        : a_(a), share_(share), left_(path.count) {
        if (left_ > 0) enter(path.tile, path.group);
    }

    __device__ __forceinline__ void start(BitsPart<W>& part) {
        if (left_ == 0) return;
#pragma unroll
        for (unsigned i = 0; i < W::loads; ++i)
            part.words[i] = load_once(
                reinterpret_cast<const uint4*>(weight_ + W::load_at(i, a_.row_bytes, whole_)));
        if constexpr (W::grouped)
            part.scales = load_cached(reinterpret_cast<const uint4*>(scales_));
        weight_ += W::step;
        scales_ += block_outputs;
        if (--left_ > 0 && --left_in_tile_ == 0) enter(tile_ + 1, 0);
    }

    // Of the first tile, what is read first: to the cache, also if an earlier kernel writes it.
    __device__ __forceinline__ void bring(uint32_t count) const {
        if (left_ < count) count = left_;
        if (left_in_tile_ < count) count = left_in_tile_;
        // A lane brings what lies together: of a block or of a row.
        constexpr unsigned rows = W::grouped ? block_outputs : 1;
        const unsigned first = threadIdx.x % 32 * rows;
        if (count == 0 || first >= share_.outputs_of(tile_)) return;
        const uint64_t output = share_.first_output + tile_ * tile_outputs + first;
        const uint64_t group = share_.first_group + share_.groups - left_in_tile_;
        bring_to_cache(a_.weight + output * a_.row_bytes + group * W::step, count * W::step);
        if constexpr (W::grouped)
            bring_to_cache(a_.scales + output * a_.scale_groups + group * block_outputs,
                           count * block_outputs * sizeof(float));
    }

private:
    __device__ __forceinline__ void enter(uint32_t tile, uint32_t group_of_block) {
        const unsigned g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
        const uint64_t output = share_.first_output + tile * tile_outputs;
        const uint64_t group = share_.first_group + group_of_block;
        tile_ = tile;
        left_in_tile_ = share_.groups - group_of_block;
        whole_ = share_.outputs_of(tile) > block_outputs;
        weight_ = a_.weight + output * a_.row_bytes + group * W::step +
                  W::lane_at(g, t, a_.row_bytes, whole_);
        if constexpr (W::grouped)
            scales_ = a_.scales +
                      (output + (whole_ ? g / 4 * block_outputs : 0)) * a_.scale_groups +
                      group * block_outputs + g % 4 * 4;
    }

    const BitsArguments& a_;
    const BitsShare<Shape>& share_;
    const char* weight_ = nullptr;
    const float* scales_ = nullptr;
    uint32_t tile_ = 0, left_in_tile_ = 0, left_;
    bool whole_ = true;
};

// Eight terms of x of a lane's token, as factors of two products.
template <class T>
struct BitsTerms {
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
    uint4 four[2];

    __device__ __forceinline__ explicit BitsTerms(const char* from)
        : four{reinterpret_cast<const uint4*>(from)[0], reinterpret_cast<const uint4*>(from)[1]} {}
    __device__ __forceinline__ void multiply_by(Tile& tile, const uint32_t (&a)[2][2],
                                                bool second) const {
        const uint4& words = four[second ? 1 : 0];
        multiply_words(tile, a[0][0], a[1][0], a[0][1], a[1][1], rests(words.x, words.z),
                       rests(words.y, words.w), BFloat16());
        multiply_words(tile, a[0][0], a[1][0], a[0][1], a[1][1], halves(words.x, words.z, false),
                       halves(words.y, words.w, false), BFloat16());
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

// What a lane reads of x, group after group. Of tokens that are not there the last one's are taken:
// nothing of them is stored.
template <class T, class W, unsigned across>
class BitsTokens {
    static constexpr unsigned step = W::products * 16 * sizeof(T);  // of a group

public:
    __device__ __forceinline__ BitsTokens(const BitsArguments& a, uint32_t first_group)
        : x_(a.x + uint64_t{first_group} * step) {
        const uint32_t groups = a.row_bytes / W::bytes_of_group;
        const unsigned g = threadIdx.x % 32 / 4;
#pragma unroll
        for (unsigned j = 0; j < across; ++j)
            rows_[j] = (j * 8 + g < a.tokens ? j * 8 + g : a.tokens - 1) * groups * step;
    }

    __device__ __forceinline__ void move(int64_t groups) { x_ += groups * step; }
    __device__ __forceinline__ BitsTerms<T> terms(unsigned j, unsigned from) const {
        return BitsTerms<T>(x_ + rows_[j] + from * sizeof(T));
    }

private:
    const char* x_;
    uint32_t rows_[across];
};

// sums += -offset times each of the group's terms: what weights have in addition. Sums of their
// own, of which no product must wait for another's.
template <class T, class W, unsigned across>
__device__ __forceinline__ void subtract_offset(Tile (&sums)[across],
                                                const BitsTokens<T, W, across>& x) {
    const unsigned t = threadIdx.x % 4;
    constexpr uint32_t less = W::template offset_of<T>() ^ 0x80008000u;
    const uint32_t factors[2][2] = {{less, less}, {less, less}};
#pragma unroll
    for (unsigned j = 0; j < across; ++j)
#pragma unroll
        for (unsigned i = 0; i < W::products; ++i)
            x.terms(j, W::depth_at(i / 2 * 2, t)).multiply_by(sums[j], factors, i % 2 != 0);
}

// tiles += a group of W, by the same of x.
template <class T, class W, unsigned across>
__device__ __forceinline__ void multiply_group(Tile (&tiles)[2][across], const BitsPart<W>& part,
                                               const BitsTokens<T, W, across>& x) {
    const unsigned t = threadIdx.x % 4;
    constexpr bool has_offset = W::template offset_of<T>() != 0;
    Tile sums[2][across] = {}, offsets[across] = {};
    if constexpr (has_offset) subtract_offset<T, W>(offsets, x);
#pragma unroll
    for (unsigned i = 0; i < W::products; i += 2) {
        uint32_t factors[2][2][2][2];
#pragma unroll
        for (unsigned k = 0; k < 16; ++k)
            factors[k / 8][k / 4 % 2][k / 2 % 2][k % 2] =
                W::template pair_of<T>(part.words, i + k / 8, k / 4 % 2, k / 2 % 2, k % 2);
#pragma unroll
        for (unsigned j = 0; j < across; ++j) {
            const BitsTerms<T> terms = x.terms(j, W::depth_at(i, t));
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
            for (unsigned r = 0; r < 4; ++r) {
                float sum = sums[m][j].at[r];
                if constexpr (has_offset) sum += offsets[j].at[r];
                if constexpr (W::grouped)
                    tiles[m][j].at[r] =
                        fmaf(sum, as_float(word_of(part.scales, 2 * m + r / 2)), tiles[m][j].at[r]);
                else
                    tiles[m][j].at[r] += sum;
            }
}

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::resident) bits_tiles(BitsArguments a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // see serves() in bits_linear.cu
    using W = typename Shape::Weights;
    const unsigned rank = a.cluster_bits > 0 ? cluster_rank() : 0;
    const BitsShare<Shape> share(a, rank);
    __shared__ Arrivals arrivals;
    SumsOf<T, Shape> result(a, share, rank, reinterpret_cast<float*>(shared_memory()));
    result.prepare(arrivals);
    // Shuffled, so that the compiler knows branches on it to be the same for all of a warp.
    const BitsPath path = share.path(shuffle_first(threadIdx.x / 32, 32));
    BitsReader<Shape> reader(a, share, path);
    reader.bring(a.early_groups);
    if (a.early_groups > 0) result.bring_ends();
    wait_for_earlier();
    let_next_begin();

    BitsPart<W> ring[Shape::ahead];
#pragma unroll
    for (unsigned i = 0; i < Shape::ahead; ++i) reader.start(ring[i]);
    result.read_ends();
    BitsTokens<T, W, Shape::across> x(a, share.first_group + path.group);
    Tile tiles[2][Shape::across] = {};
    uint32_t tile = path.tile, left = share.groups - path.group;
    for (uint32_t done = 0; done < path.count; done += Shape::ahead)
#pragma unroll
        for (unsigned i = 0; i < Shape::ahead; ++i)
            if (done + i < path.count) {
                multiply_group(tiles, ring[i], x);
                reader.start(ring[i]);
                x.move(1);
                if (--left == 0) {
                    result.put(tiles, tile++);
#pragma unroll
                    for (auto& row : tiles)
#pragma unroll
                        for (Tile& one : row) one = {};
                    left = share.groups;
                    x.move(-int64_t{share.groups});
                }
            }
    if (path.count > 0 && left < share.groups) result.put(tiles, tile);
    if (a.cluster_bits > 0) wait_for_cluster();
    result.finish();
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda
