#pragma once
// How a product of rows and weights in fp8 is divided among clusters, blocks and warps
// (fp8_products.h).

#include <algorithm>

#include "cuda/launches.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

struct Fp8Arguments {
    const char *x, *weight;          // in fp8, rows and outputs of `depth` terms
    const float *x_scales, *scales;  // of a row, of an output
    const void* bias;                // or null
    void* y;
    DType dtype;  // of bias and y
    uint32_t rows, outputs, depth;
    uint32_t row_tiles;     // in which clusters share the rows
    uint32_t cluster_bits;  // of the blocks in a cluster, a power of two
    bool early;             // weights are brought to the cache before earlier kernels end
};

// Of a block, 64 rows times `row_units`, and two pieces of so many outputs. Each four of its warps
// multiply 64 rows by a piece, once or some times.
template <int row_units_, int piece_>
struct Fp8Shape {
    static constexpr unsigned row_units = row_units_, piece = piece_, tiles = piece / 8;
    static constexpr unsigned threads = 256, warps = threads / 32;
    static constexpr unsigned rows = 64 * row_units, outputs = 2 * piece;
    static constexpr unsigned products = row_units;
    static constexpr unsigned step = 128;  // terms of a row that are brought at once
    static constexpr unsigned stage_bytes = (rows + outputs) * step;
    static constexpr unsigned most_bytes = 208 << 10;
    static constexpr unsigned stages = std::min(8u, most_bytes / stage_bytes);
    static constexpr unsigned bytes = stages * stage_bytes;
    static_assert(row_units == 1 || row_units == 2 || row_units == 4);

    // Of a product of a team of four warps.
    static __device__ __forceinline__ unsigned unit_of(unsigned team, unsigned product) {
        return row_units == 1 ? 0 : team * (row_units / 2) + product / 2;
    }
    static __device__ __forceinline__ unsigned piece_of(unsigned team, unsigned product) {
        return row_units == 1 ? team : product % 2;
    }
};

// A cluster has rows and outputs of its own, its blocks share the depth.
template <class Shape>
struct Fp8Share {
    uint32_t first_row, rows, first_output, outputs;
    uint32_t first_step, steps;

    __device__ __forceinline__ Fp8Share(const Fp8Arguments& a, unsigned rank) {
        const uint32_t cluster = blockIdx.x >> a.cluster_bits;
        const uint32_t row_tile = cluster % a.row_tiles, tile = cluster / a.row_tiles;
        const auto row_of = [&](uint64_t some) {
            return static_cast<uint32_t>(a.rows * some / a.row_tiles);
        };
        first_row = row_of(row_tile);
        rows = row_of(row_tile + 1) - first_row;
        first_output = tile * Shape::outputs;
        const uint32_t left = a.outputs - first_output;
        outputs = left < Shape::outputs ? left : Shape::outputs;
        const auto all = static_cast<uint32_t>(quotient_up(a.depth, Shape::step));
        first_step = all * rank >> a.cluster_bits;
        steps = (all * (rank + 1) >> a.cluster_bits) - first_step;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
