#pragma once
// Threads that share a row, and which of its vectors each has.

#include "cuda/cluster.h"
#include "cuda/norm_formulas.h"
#include "cuda/rows.h"

namespace twinkle_pack::cuda {
namespace {

// The threads of a row: a part of a warp or up to a block, for rows with arbitrary strides; a
// block; a block that leaves others more room; several blocks.
enum class Team { any, block, lean, cluster };

// Rows in registers, and which threads hold them. All divisors are powers of two, given as
// shifts.
template <class Number>
struct RowsOf {
    uint32_t rows, vectors, lanes;
    uint32_t lane_bits;   // if a row has at most a warp's lanes
    uint32_t block_bits;  // of the blocks that share a row: a cluster
    Length<Number> length;

    RowsOf(uint64_t all_rows, uint64_t row_vectors, const Split& split, int64_t n)
        : rows(static_cast<uint32_t>(all_rows)),
          vectors(static_cast<uint32_t>(row_vectors)),
          lanes(split.lanes),
          lane_bits(bits_of(split.lanes)),
          block_bits(bits_of(split.blocks)),
          length(static_cast<uint64_t>(n)) {}

    static uint32_t bits_of(uint32_t power) {
        uint32_t bits = 0;
        while (power >> bits > 1) ++bits;
        return bits;
    }
};
template <class X>
using NumberOf = typename ComputedIn<X>::type::reg;

// This thread's row, its place among the row's lanes, and its block's rank in the cluster: like
// Lane, but in 32 bits and without divisions.
struct Seat {
    uint32_t row, lane, rank = 0;

    template <Team team, class Number>
    static __device__ __forceinline__ Seat of(const RowsOf<Number>& all) {
        Seat seat{blockIdx.x, threadIdx.x};
        if constexpr (team == Team::cluster) {
            seat.row >>= all.block_bits;
            seat.rank = cluster_rank();
            seat.lane += seat.rank * blockDim.x;
        }
        if (team == Team::any && all.lanes <= warp) {
            seat.row = blockIdx.x * (blockDim.x >> all.lane_bits) + (threadIdx.x >> all.lane_bits);
            seat.lane = threadIdx.x & (all.lanes - 1);
        }
        return seat;
    }
};

// A thread's vectors 0, 1, … of its row, and their addresses.
template <Team team, int tensors, Reading reading = Reading::cached>
struct Share {
    // A team that owns a row loads in every lane, because conditions would stall. A lane without a
    // vector of its own loads the row's last one.
    static constexpr bool loads_all = team != Team::any;
    const Seat& seat;
    const uint32_t vectors, lanes;
    const bool active;
    char* at[tensors];

    template <class Places, class Number>
    __device__ __forceinline__ Share(const Seat& of, const RowsOf<Number>& all,
                                     const Places& places)
        : seat(of), vectors(all.vectors), lanes(all.lanes), active(loads_all || of.row < all.rows) {
        places.find_row(active ? seat.row : 0, at);
    }

    __device__ __forceinline__ uint32_t vector_of(int j) const {
        return seat.lane + static_cast<unsigned>(j) * lanes;
    }
    __device__ __forceinline__ bool is_mine(int j) const {
        return active && vector_of(j) < vectors;
    }
    __device__ __forceinline__ bool loads(int j) const { return loads_all || is_mine(j); }
    // A vector of n elements: of a tensor, and of a weight that all rows share.
    template <class T, int n>
    __device__ __forceinline__ Loaded<T, n> load_from(int k, int j) const {
        return load_packed<T, n, reading>(at[k] + loaded_from(j) * sizeof(Pack<T, n>));
    }
    template <class T, int n>
    __device__ __forceinline__ Loaded<T, n> load_shared(const void* from, int j) const {
        return load_packed<T, n>(static_cast<const char*>(from) +
                                 loaded_from(j) * sizeof(Pack<T, n>));
    }
    template <class T, int n>
    __device__ __forceinline__ void store_to(int k, int j, const Pack<T, n>& pack) const {
        if (is_mine(j)) store(at[k] + static_cast<uint64_t>(vector_of(j)) * sizeof pack, pack);
    }

private:
    __device__ __forceinline__ uint64_t loaded_from(int j) const {
        return loads_all && vector_of(j) >= vectors ? vectors - 1 : vector_of(j);
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda
