#pragma once
// Barriers in shared memory that wait for bytes (compute capability 9.0 and later): of copies, and
// of what other blocks send.

#include <cstdint>

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

__device__ __forceinline__ unsigned shared_address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

struct ByteBarrier {
    alignas(8) uint64_t state;

    // By one thread; others use it after a barrier that they have in common.
    __device__ __forceinline__ void prepare() {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "mbarrier.init.shared::cta.b64 [%0], 1;"
            "fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&state))
            : "memory");
#endif
    }
    // By one thread: so many bytes come next.
    __device__ __forceinline__ void expect(unsigned bytes) {
#if __CUDA_ARCH__ >= 900
        asm volatile(
            "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&state)),
            "r"(bytes)
            : "memory");
#endif
    }
    // Returns when they have come. `odd`: the second time, the fourth, and so on.
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
