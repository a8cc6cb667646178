#pragma once
// Lets blocks that work on one row send each other their results (compute capability 9.0 and
// later). Without nvcc, tests/pack/on_host/on_host.h replaces it.

#include "cuda/barrier.h"
#include "cuda/platform.h"

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

__device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

// A barrier of all threads of a cluster, in two steps: what they wrote before the first, all see
// after the second.
__device__ __forceinline__ void arrive_in_cluster() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_cluster() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// The first step, where nothing that was written matters to others.
__device__ __forceinline__ void arrive_in_cluster_empty() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}

// The address of the same variable in another block of the cluster.
__device__ __forceinline__ unsigned shared_address_in(unsigned rank, const void* shared) {
    unsigned there = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(shared_address(shared)), "r"(rank));
#endif
    return there;
}

// Stores four numbers into the shared memory of another block of the cluster, where `mine` is in
// this one.
__device__ __forceinline__ void store_in_block(unsigned rank, float* mine, const uint4& value) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared_address_in(rank, mine)),
        "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
        : "memory");
#endif
}
// The same, counted by that block's barrier.
__device__ __forceinline__ void send_to_block(unsigned rank, const void* mine, const uint4& value,
                                              const ByteBarrier& barrier) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(shared_address_in(rank, mine)),
        "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w),
        "r"(shared_address_in(rank, &barrier.state))
        : "memory");
#endif
}

// In shared memory: waits for what the blocks of the cluster send to this one, once. No barrier of
// the cluster follows, before which all that their threads have written would have to arrive.
struct Arrivals {
    ByteBarrier barrier;

    // So many bytes will arrive. By one thread, before the block arrives in the cluster, which the
    // others wait for before they send.
    __device__ __forceinline__ void expect(unsigned bytes) {
        barrier.prepare();
        barrier.expect(bytes);
    }
    __device__ __forceinline__ void send(unsigned rank, const float* mine, const uint4& value) {
        send_to_block(rank, mine, value, barrier);
    }
    // By all threads of the cluster.
    __device__ __forceinline__ void wait() { barrier.wait(false); }
};

// In shared memory: items of 16 bytes that every block of the cluster sends to all of them, once.
template <class Item, int most>
struct Gathered {
    static_assert(sizeof(Item) == 16);
    alignas(16) Item items[most];
    ByteBarrier barrier;

    // Called by all threads of the block, as early as possible.
    __device__ __forceinline__ void prepare() {
        if (threadIdx.x == 0) barrier.prepare();
        arrive_in_cluster_empty();
    }
    // Called by all threads before the first sends: waits until the others are prepared. `count`
    // items will arrive here; some may have already.
    __device__ __forceinline__ void wait_for_others(unsigned count) {
        wait_for_cluster();
        if (threadIdx.x == 0) barrier.expect(count * static_cast<unsigned>(sizeof(Item)));
    }
    __device__ __forceinline__ void send(const Item& item, unsigned place, unsigned to_rank) {
        uint4 words;
        __builtin_memcpy(&words, &item, sizeof words);
        send_to_block(to_rank, &items[place], words, barrier);
    }
    // Returns when all expected items have arrived.
    __device__ __forceinline__ void wait_for_items() { barrier.wait(false); }
};

}  // namespace
}  // namespace twinkle_pack::cuda

#endif
