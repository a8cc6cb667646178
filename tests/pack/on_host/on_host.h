#pragma once
// CUDA's names for the kernels of the bundled pack, on the CPU: every thread of a block runs, on
// its own stack, and waits where CUDA's would. Checks in addition: that wide loads and stores are
// aligned, that all threads of a warp or block meet where they must, that a kernel launched early
// waits before it reads or writes in such steps, and that a block of a cluster waits for exactly
// the items that are sent to it.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "half.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local

namespace twinkle_pack::cuda {

#include "loops/half_conversion.h"

struct Index3 {
    unsigned x = 0, y = 0, z = 0;
};
inline thread_local Index3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(8) uint2 {
    uint32_t x, y;
};
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};

template <unsigned most_blocks = 0>
void let_next_begin() {}  // here none begins before another has ended
// Like CUDA's. In a kernel launched early every thread must call it.
void wait_for_earlier();
// Throws std::logic_error if the thread has not called it.
void check_waited();

inline void check_aligned(const void* address) {
    check_waited();
    if (reinterpret_cast<uintptr_t>(address) % 16 != 0)
        throw std::logic_error("a wide access at an address that 16 does not divide");
}
inline uint4 load_once(const uint4* from) {
    check_aligned(from);
    return *from;
}
inline uint4 load_cached(const uint4* from) {
    return load_once(from);
}
inline void store_wide(uint4* to, uint4 value) {
    check_aligned(to);
    *to = value;
}

inline float exp_approximate(float x) {
    return std::exp(x);
}
inline float quotient_approximate(float a, float b) {
    return a / b;
}
inline float inverse_root(float x) {
    return 1 / std::sqrt(x);
}
inline double inverse_root(double x) {
    return 1 / std::sqrt(x);
}
inline void from_floats(float a, float b, float* to) {
    to[0] = a, to[1] = b;
}
inline void from_floats(float a, float b, BFloat16* to) {
    to[0] = from_float<BFloat16>(a), to[1] = from_float<BFloat16>(b);
}
inline void from_floats(float a, float b, Float16* to) {
    to[0] = from_float<Float16>(a), to[1] = from_float<Float16>(b);
}
inline void forget(uint32_t&) {}
inline uint32_t upper_product(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
inline uint64_t upper_product(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 Wide;
    return static_cast<uint64_t>(Wide{a} * b >> 64);
}

// The barrier of a block's threads.
void __syncthreads();
// The value that the thread with this number in the warp has passed.
uint64_t exchange(uint64_t value, unsigned from_lane);

template <class T>
T shuffle_from(T value, unsigned lane) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange(bits, lane);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
T shuffle_xor(T value, unsigned mask) {
    return shuffle_from(value, (threadIdx.x ^ mask) % 32);
}
template <class T>
T shuffle_first(T value, unsigned lanes) {
    if (lanes == 0 || 32 % lanes != 0) throw std::logic_error("no such part of a warp");
    return shuffle_from(value, threadIdx.x % 32 / lanes * lanes);
}
inline bool any_in_warp(bool value) {
    for (unsigned mask = 16; mask > 0; mask /= 2) value |= shuffle_xor(value, mask);
    return value;
}

inline void meet_warp() {
    exchange(0, threadIdx.x % 32);
}

struct Grid {
    uint64_t x = 1, y = 1;
    unsigned shared_bytes = 0;
};

struct Start {
    unsigned cluster = 1;
    bool early = false;
};
void run_grid(Grid grid, unsigned threads, Start start, const std::function<void()>& kernel);

template <class... Parameters>
void launch(void*, void (*kernel)(Parameters...), Grid grid, unsigned threads,
            std::type_identity_t<Parameters>... parameters) {
    run_grid(grid, threads, {}, [&] { kernel(parameters...); });
}

constexpr uint16_t usual_cluster_blocks = 8, most_cluster_blocks = 16;
constexpr unsigned most_shared_bytes = 227 << 10;  // of a Hopper's block

struct Card {
    uint16_t multiprocessors, cache_mib, cluster_blocks;
    bool early, hopper;
};
// A small GPU, so that the tests' cases are large for it. TWINKLE_PACK_CLUSTER: how many blocks can
// form a cluster; on a part of a GPU fewer than 16.
inline Card card(int) {
    static const char* const cluster = std::getenv("TWINKLE_PACK_CLUSTER");
    return {16, 1, static_cast<uint16_t>(cluster ? std::atoi(cluster) : most_cluster_blocks), true,
            true};
}

template <class... Parameters>
void launch_early(void*, const Card& card, void (*kernel)(Parameters...), Grid grid,
                  unsigned threads, unsigned cluster,
                  std::type_identity_t<Parameters>... parameters) {
    if (cluster > card.cluster_blocks) throw std::logic_error("no such cluster on this GPU");
    run_grid(grid, threads, {cluster, card.early}, [&] { kernel(parameters...); });
}

// How many clusters of such blocks run at once, on that GPU.
template <class... Parameters>
int clusters_at_once(const Card& card, void (*)(Parameters...), unsigned, unsigned shared_bytes,
                     unsigned cluster) {
    return shared_bytes > most_shared_bytes || cluster > card.cluster_blocks
               ? 0
               : card.multiprocessors / static_cast<int>(cluster);
}

// The memory that a kernel was launched with: not numbers, until something is written.
char* shared_memory();
// Copies arrive when they are waited for, not before.
void start_copy(void* to, const void* from, bool there);
inline void start_copy_once(void* to, const void* from, bool there) {
    start_copy(to, from, there);
}
void end_copies();
void wait_for_copies(unsigned pending);
template <int pending>
void wait_for_copies() {
    wait_for_copies(static_cast<unsigned>(pending));
}
inline void bring_to_cache(const void* from, unsigned bytes) {
    if (reinterpret_cast<uintptr_t>(from) % 16 != 0 || bytes % 16 != 0 || bytes == 0)
        throw std::logic_error("16 does not divide what is brought to the cache");
}

inline void bring_line_to_cache(const void*) {}

// A product of four warps together: made when it is waited for, not before.
void start_product(std::function<void()> product);
void end_products();
// All of this thread's groups of products but the latest `pending`.
void make_started_products(unsigned pending);

unsigned cluster_rank();
void meet_cluster();
inline void arrive_in_cluster() {}
inline void arrive_in_cluster_empty() {}
inline void wait_for_cluster() {
    meet_cluster();
}
// Into the shared memory of another block, where `mine` is in this one's.
void store_in_block(unsigned rank, float* mine, const uint4& value);

// Throws std::logic_error unless these bytes are in the shared memory.
void check_in_shared(const void* at, unsigned bytes);

// A copy that has begun: where not `there`, zeros arrive.
struct HostCopy {
    char* to;
    const char* from;
    unsigned bytes;
    bool there;
    unsigned group;  // of its thread's, from the first on

    void arrive() const {
        if (there)
            std::memcpy(to, from, bytes);
        else
            std::memset(to, 0, bytes);
    }
};
// The calling thread's, which then are another's.
std::vector<HostCopy> take_copies();
// Lets other threads go on, until `come` is true.
void wait_until(const std::function<bool()>& come);
// Says that another may go on.
void note_progress();

// Here all blocks share their shared variables: each block of a cluster has its own place in them.
// Copies arrive when they are waited for, not before.
class ByteBarrier {
public:
    void prepare(unsigned arrivals = 1) { of_block() = {arrivals, arrivals, 0, 0, {}}; }
    void arrive() {
        OfBlock& here = of_block();
        if (here.left == 0) throw std::logic_error("more arrive than a barrier waits for");
        --here.left;
        note_progress();
    }
    void arrive_with_copies() {
        OfBlock& here = of_block();
        for (const HostCopy& copy : take_copies()) here.copies.push_back(copy);
        arrive();
    }
    void expect(unsigned bytes) {
        of_block().expected += bytes;
        arrive();
    }
    void start_copy(void* to, const void* from, unsigned bytes) {
        check_aligned(to);
        check_aligned(from);
        check_in_shared(to, bytes);
        if (bytes % 16 != 0) throw std::logic_error("no such copies");
        std::memset(to, 0xff, bytes);
        of_block().copies.push_back(
            {static_cast<char*>(to), static_cast<const char*>(from), bytes, true, by_engine});
    }
    void wait(bool odd) {
        OfBlock& here = of_block();
        wait_until([&] {
            if (here.left == 0) here.finish();
            return (here.times % 2 != 0) != odd;
        });
    }

private:
    static constexpr unsigned by_engine = ~0u;  // such copies are counted in bytes
    struct OfBlock {
        unsigned arrivals, left, expected, times;
        std::vector<HostCopy> copies;

        void finish() {
            for (const HostCopy& copy : copies) {
                copy.arrive();
                if (copy.group == by_engine) expected -= copy.bytes;
            }
            copies.clear();
            if (expected != 0) return;
            ++times;
            left = arrivals;
        }
    };
    OfBlock& of_block() { return of_blocks_[cluster_rank()]; }
    OfBlock of_blocks_[most_cluster_blocks];
};

struct Arrivals {
    void expect(unsigned bytes) {
        expected_[cluster_rank()] = bytes;
        received_[cluster_rank()] = 0;
    }
    void send(unsigned rank, float* mine, const uint4& value) {
        store_in_block(rank, mine, value);
        received_[rank] += static_cast<unsigned>(sizeof value);
    }
    void wait() {
        meet_cluster();
        if (received_[cluster_rank()] != expected_[cluster_rank()])
            throw std::logic_error("a block waits for other bytes than are sent to it");
    }

private:
    unsigned expected_[most_cluster_blocks], received_[most_cluster_blocks];
};

template <class Item, int most>
struct Gathered {
    struct Items {
        Item of_block[most_cluster_blocks][most];
        Item& operator[](unsigned place) { return of_block[cluster_rank()][place]; }
    };
    Items items;

    void prepare() { received_[cluster_rank()] = 0; }
    void wait_for_others(unsigned count) {
        expected_[cluster_rank()] = count;
        meet_cluster();
    }
    void send(const Item& item, unsigned place, unsigned to_rank) {
        if (place >= static_cast<unsigned>(most) || to_rank >= most_cluster_blocks)
            throw std::logic_error("sent to a place that is not there");
        items.of_block[to_rank][place] = item;
        ++received_[to_rank];
    }
    void wait_for_items() {
        meet_cluster();
        if (received_[cluster_rank()] != expected_[cluster_rank()])
            throw std::logic_error("a block waits for other items than are sent to it");
    }

private:
    unsigned expected_[most_cluster_blocks], received_[most_cluster_blocks];
};

}  // namespace twinkle_pack::cuda
