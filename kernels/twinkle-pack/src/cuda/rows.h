#pragma once
// How threads share rows: `lanes` threads per row, each with `held` vectors of it in registers. If
// a row has at most a warp's lanes, a block has several rows; else it has one.

#include <stdexcept>

#include "cuda/launching.h"
#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned warp = 32;

// The threads that a block may have if each holds so many registers of data, beside 30 for
// everything else: a multiprocessor has 65536.
constexpr unsigned most_threads_holding(int registers) {
    return registers <= 24 ? 1024 : registers <= 48 ? 768 : 512;
}

struct Split {
    unsigned lanes, threads;
    int held;  // 1, 2, 4 or 8; 0: the row is too long
    Grid grid;
    unsigned blocks = 1;  // that share a row
};

inline unsigned power_up(uint64_t value) {
    unsigned power = 1;
    while (power < value) power *= 2;
    return power;
}

inline bool are_many(uint64_t rows, const Card& card) {
    return rows >= static_cast<uint64_t>(card.multiprocessors) * 4;
}

// Rows that fit in a warp.
inline bool are_short(uint64_t vectors, bool many) {
    return vectors <= (many ? warp * 4 : warp);
}
inline Split split_short_rows(uint64_t rows, uint64_t vectors, bool many) {
    Split split{};
    split.held = 1;
    while (vectors > warp * static_cast<unsigned>(split.held)) split.held *= 2;
    split.lanes = power_up(quotient_up(vectors, static_cast<uint64_t>(split.held)));
    split.threads = many ? 128 : warp;
    split.grid.x = quotient_up(rows, split.threads / split.lanes);
    return split;
}

inline uint64_t threads_for(uint64_t vectors, int held) {
    return quotient_up(quotient_up(vectors, static_cast<uint64_t>(held)), warp) * warp;
}

// One row per block, with as few vectors per thread as its limit allows. Limits<held>: the thread
// limit of a block that holds so many.
template <template <int> class Limits, int least_held, int most_held>
Split split_long_rows(uint64_t rows, uint64_t vectors) {
    Split split{};
    const auto fits = [&](int held, unsigned limit) {
        const uint64_t threads = threads_for(vectors, held);
        if (split.held || held < least_held || held > most_held || threads > limit) return;
        split.held = held;
        split.lanes = split.threads = static_cast<unsigned>(threads);
        split.grid.x = rows;
    };
    fits(1, Limits<1>::threads);
    fits(2, Limits<2>::threads);
    fits(4, Limits<4>::threads);
    fits(8, Limits<8>::threads);
    return split;
}

// Few rows: as many threads as there are vectors, so that all loads are in flight at once. Many:
// several vectors per thread, to spend less time on sums over threads.
template <template <int> class Limits, int most_held>
Split split_rows(uint64_t rows, uint64_t vectors, const Card& card) {
    const bool many = are_many(rows, card);
    if (are_short(vectors, many)) return split_short_rows(rows, vectors, many);
    return many ? split_long_rows<Limits, 4, most_held>(rows, vectors)
                : split_long_rows<Limits, 1, most_held>(rows, vectors);
}

// A kernel is compiled for a maximal number of threads in a block.
inline void check_threads(unsigned threads, unsigned most) {
    if (threads > most) throw std::logic_error("twinkle-pack: more threads than a kernel has");
}

// This thread's row, and its place among the lanes.
struct Lane {
    uint64_t row;
    unsigned lane;

    __device__ __forceinline__ explicit Lane(unsigned lanes) {
        if (lanes > warp) {
            row = blockIdx.x;
            lane = threadIdx.x;
        } else {
            row = static_cast<uint64_t>(blockIdx.x) * (blockDim.x / lanes) + threadIdx.x / lanes;
            lane = threadIdx.x % lanes;
        }
    }
};

// Two sums at once.
template <class Number>
struct Pair {
    Number first, second;

    __device__ __forceinline__ Pair& operator+=(const Pair& other) {
        first += other.first;
        second += other.second;
        return *this;
    }
};
template <class Number>
__device__ __forceinline__ Number other_lane(Number value, unsigned mask) {
    return shuffle_xor(value, mask);
}
template <class Number>
__device__ __forceinline__ Pair<Number> other_lane(const Pair<Number>& value, unsigned mask) {
    return {shuffle_xor(value.first, mask), shuffle_xor(value.second, mask)};
}

// The sum over this many lanes of a warp (a power of two, or more than a warp has), the same in
// all.
template <class Number>
__device__ __forceinline__ Number sum_in_warp(Number value, unsigned lanes) {
#pragma unroll
    for (unsigned distance = warp / 2; distance > 0; distance /= 2)
        if (distance < lanes) value += other_lane(value, distance);
    return value;
}

// The sum over a row's lanes, the same in all of them. Called by all threads of the block; `shared`
// has one number for each warp, and serves one sum only.
template <class Number>
__device__ __forceinline__ Number sum_over_lanes(Number value, unsigned lanes, Number* shared) {
    value = sum_in_warp(value, lanes);
    if (lanes <= warp) return value;
    if (threadIdx.x % warp == 0) shared[threadIdx.x / warp] = value;
    __syncthreads();
    value = threadIdx.x % warp < blockDim.x / warp ? shared[threadIdx.x % warp] : Number{};
    return sum_in_warp(value, warp);
}

// Calls f with the number of vectors as a constant.
template <int most, class F>
void with_held(int held, const F& f) {
    switch (held) {
        case 1: return f(std::integral_constant<int, 1>());
        case 2: return f(std::integral_constant<int, 2>());
        case 4: return f(std::integral_constant<int, 4>());
        default:
            if constexpr (most >= 8) return f(std::integral_constant<int, 8>());
    }
}

}  // namespace
}  // namespace twinkle_pack::cuda
