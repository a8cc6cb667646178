#pragma once
// How threads share rows: `lanes` threads a row, each with `held` vectors of it in registers. Where
// the lanes are no more than a warp's, a block has several rows; else it has one.

#include "cuda/places.h"

namespace twinkle_pack::cuda {
namespace {

constexpr unsigned warp = 32;

// How many threads a block may have whose threads hold so many registers of data, beside the 30 of
// everything: a multiprocessor has 65536.
constexpr unsigned most_threads_holding(int registers) {
    return registers <= 24 ? 1024 : registers <= 48 ? 768 : 512;
}

struct Split {
    unsigned lanes, threads;
    int held;  // 1, 2, 4 or 8; 0: the row is too long
    Grid grid;
};

inline unsigned power_up(uint64_t value) {
    unsigned power = 1;
    while (power < value) power *= 2;
    return power;
}

// Few rows: as many threads as there are vectors, so that all loads are under way at once. Many:
// several vectors a thread, so that less of its time goes into sums over threads. Limits<held>: the
// threads of a block that holds so many.
template <template <int> class Limits, int most_held>
Split split_rows(uint64_t rows, uint64_t vectors, int multiprocessors) {
    const auto limit = [](int held) {
        return held == 1   ? Limits<1>::threads
               : held == 2 ? Limits<2>::threads
               : held == 4 ? Limits<4>::threads
                           : Limits<8>::threads;
    };
    Split split{};
    const bool many = rows >= static_cast<uint64_t>(multiprocessors) * 4;
    if (vectors <= (many ? warp * 4 : warp)) {
        split.held = 1;
        while (vectors > warp * static_cast<unsigned>(split.held)) split.held *= 2;
        split.lanes = power_up(quotient_up(vectors, static_cast<uint64_t>(split.held)));
        split.threads = many ? 128 : warp;
        split.grid.x = quotient_up(rows, split.threads / split.lanes);
        return split;
    }
    for (int held = many ? 4 : 1; held <= most_held; held *= 2) {
        const uint64_t threads =
            quotient_up(quotient_up(vectors, static_cast<uint64_t>(held)), warp) * warp;
        if (threads > limit(held)) continue;
        split.held = held;
        split.lanes = split.threads = static_cast<unsigned>(threads);
        split.grid.x = rows;
        break;
    }
    return split;
}

// Which row is this thread's, and its place among the lanes.
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

// The sum over a row's lanes, the same in all of them. All threads of the block take part; `shared`
// has one for each warp, and serves one sum only.
template <class Number>
__device__ __forceinline__ Number sum_over_lanes(Number value, unsigned lanes, Number* shared) {
    for (unsigned distance = (lanes < warp ? lanes : warp) / 2; distance > 0; distance /= 2)
        value += other_lane(value, distance);
    if (lanes <= warp) return value;
    if (threadIdx.x % warp == 0) shared[threadIdx.x / warp] = value;
    __syncthreads();
    value = threadIdx.x % warp < blockDim.x / warp ? shared[threadIdx.x % warp] : Number{};
#pragma unroll
    for (unsigned distance = warp / 2; distance > 0; distance /= 2)
        value += other_lane(value, distance);
    return value;
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
