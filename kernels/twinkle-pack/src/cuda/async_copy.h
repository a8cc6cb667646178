#pragma once
// Copies from global to shared memory that a thread starts and collects later: many bytes under
// way without registers for them. Without nvcc, tests/pack/on_host/on_host.h replaces it.

#include "cuda/barrier.h"
#include "cuda/platform.h"

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

// As many bytes as the kernel was launched with. The address is what wgmma.h needs.
__device__ __forceinline__ char* shared_memory() {
    extern __shared__ __align__(1024) char shared[];
    return shared;
}

// Copies 16 bytes, or writes zeros and reads nothing. The first is for what is read once, and
// passes the L1 cache by. Without a policy for the L2 cache: ptxas 13.0 makes illegal instructions
// of copies that have one.
__device__ __forceinline__ void start_copy_once(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
#endif
}
__device__ __forceinline__ void start_copy(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
#endif
}

// Ends a group of copies, which may be empty.
__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Returns when all of this thread's groups but the latest `pending` have arrived, for this thread.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

// Brings bytes, a multiple of 16, to the L2 cache. Changes nothing else: also right for data that
// an earlier kernel still writes.
__device__ __forceinline__ void bring_to_cache(const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}

// As bring_to_cache, what lies around any address.
__device__ __forceinline__ void bring_line_to_cache(const void* from) {
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda

#else
#include "on_host.h"
#endif
