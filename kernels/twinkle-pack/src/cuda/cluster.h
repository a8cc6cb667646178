#pragma once
// Lets blocks that work on one row send each other their results (compute capability 9.0 and
// later). Without nvcc, tests/pack/on_host/on_host.h replaces it.

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

// Stores four numbers into the shared memory of another block of the cluster, where `mine` is in
// this one.
__device__ __forceinline__ void store_in_block(unsigned rank, float* mine, const uint4& value) {
#if __CUDA_ARCH__ >= 900
    unsigned there = 0;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(mine))), "r"(rank));
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(there), "r"(value.x),
                 "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
#endif
}

// In shared memory: items of 16 bytes that every block of the cluster sends to all of them, once.
template <class Item, int most>
struct Gathered {
    static_assert(sizeof(Item) == 16);
    alignas(16) Item items[most];
    alignas(8) uint64_t barrier;

    // Called by all threads of the block, as early as possible.
    __device__ __forceinline__ void prepare() {
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x == 0)
            asm volatile(
                "mbarrier.init.shared::cta.b64 [%0], 1;"
                "fence.mbarrier_init.release.cluster;" ::"r"(at(&barrier))
                : "memory");
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
    }
    // Called by all threads before the first sends: waits until the others are prepared. `count`
    // items will arrive here; some may have already.
    __device__ __forceinline__ void wait_for_others(unsigned count) {
#if __CUDA_ARCH__ >= 900
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        if (threadIdx.x == 0)
            asm volatile(
                "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&barrier)),
                "r"(count * static_cast<unsigned>(sizeof(Item)))
                : "memory");
#endif
    }
    __device__ __forceinline__ void send(const Item& item, unsigned place, unsigned to_rank) {
#if __CUDA_ARCH__ >= 900
        uint4 words;
        __builtin_memcpy(&words, &item, sizeof words);
        asm volatile(
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
            "[%5];" ::"r"(there(&items[place], to_rank)),
            "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "r"(there(&barrier, to_rank))
            : "memory");
#endif
    }
    // Returns when all expected items have arrived.
    __device__ __forceinline__ void wait_for_items() {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{\n"
            ".reg .pred come;\n"
            "again:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 come, [%0], 0;\n"
            "@!come bra again;\n"
            "}" ::"r"(at(&barrier))
            : "memory");
#endif
    }

private:
    static __device__ __forceinline__ unsigned at(const void* shared) {
        return static_cast<unsigned>(__cvta_generic_to_shared(shared));
    }
    // The address of the same variable in another block.
    static __device__ __forceinline__ unsigned there(const void* shared, unsigned rank) {
        unsigned remote = 0;
#if __CUDA_ARCH__ >= 900
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                     : "=r"(remote)
                     : "r"(at(shared)), "r"(rank));
#endif
        return remote;
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda

#endif
