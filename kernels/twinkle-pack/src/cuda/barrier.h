#pragma once
// Barriers in shared memory that wait for threads and for bytes (compute capability 9.0 and later):
// of copies, and of what other blocks send. Without nvcc, tests/pack/on_host/on_host.h replaces it.

#include <cstdint>

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

__device__ __forceinline__ unsigned shared_address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// Used time after time.
struct ByteBarrier {
    alignas(8) uint64_t state;

    // By one thread; others use it after a barrier that they have in common. `arrivals` each time.
    __device__ __forceinline__ void prepare(unsigned arrivals = 1) {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], %1;"
            "fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&state)),
            "r"(arrivals)
            : "memory");
#endif
    }
    __device__ __forceinline__ void arrive() {
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&state))
                     : "memory");
#endif
    }
    // Of the calling thread, when all copies have arrived that it has started (async_copy.h).
    __device__ __forceinline__ void arrive_with_copies() {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&state))
            : "memory");
#endif
    }
    // One arrives: so many bytes come next.
    __device__ __forceinline__ void expect(unsigned bytes) {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)),
            "r"(bytes)
            : "memory");
#endif
    }
    // By the copy engine. `bytes` and both addresses are multiples of 16.
    __device__ __forceinline__ void start_copy(void* to, const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
            "[%3];" ::"r"(shared_address(to)),
            "l"(from), "r"(bytes), "r"(shared_address(&state))
            : "memory");
#endif
    }
    // Returns when all have come. `odd`: the second time, the fourth, and so on.
    __device__ __forceinline__ void wait(bool odd) {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "{\n"
            ".reg .pred come;\n"
            "again:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 come, [%0], %1;\n"
            "@!come bra again;\n"
            "}" ::"r"(shared_address(&state)),
            "r"(odd ? 1 : 0)
            : "memory");
#endif
    }
};

}  // namespace
}  // namespace twinkle_pack::cuda

#endif
