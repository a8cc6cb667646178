#pragma once
// What code on the device uses of CUDA. Without nvcc, tests/pack/on_host/on_host.h gives the same
// names and runs the kernels on the CPU, thread by thread.

#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "half.h"

namespace twinkle_pack::cuda {

// A 16-byte load of what leaves the L2 cache first, and of what stays. Not through ld.global.nc:
// what that reads must never change, so compilers move it before wait_for_earlier().
__device__ __forceinline__ uint4 load_once(const uint4* from) {
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}
__device__ __forceinline__ uint4 load_cached(const uint4* from) {
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}
__device__ __forceinline__ void store_wide(uint4* to, uint4 value) {
    *to = value;
}

__device__ __forceinline__ float exp_approximate(float x) {
    return __expf(x);
}
__device__ __forceinline__ float quotient_approximate(float a, float b) {
    return __fdividef(a, b);
}
__device__ __forceinline__ float inverse_root(float x) {
    return rsqrtf(x);
}
__device__ __forceinline__ double inverse_root(double x) {
    return 1.0 / sqrt(x);
}

__device__ __forceinline__ float to_float(float value) {
    return value;
}
__device__ __forceinline__ float to_float(BFloat16 value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
__device__ __forceinline__ float to_float(Float16 value) {
    return __half2float(__ushort_as_half(value.bits));
}
// Two at once: what the hardware converts in one step.
__device__ __forceinline__ void from_floats(float a, float b, float* to) {
    to[0] = a, to[1] = b;
}
__device__ __forceinline__ void from_floats(float a, float b, BFloat16* to) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(a, b);
    to[0].bits = __bfloat16_as_ushort(both.x), to[1].bits = __bfloat16_as_ushort(both.y);
}
__device__ __forceinline__ void from_floats(float a, float b, Float16* to) {
    const __half2 both = __floats2half2_rn(a, b);
    to[0].bits = __half_as_ushort(both.x), to[1].bits = __half_as_ushort(both.y);
}

// The compiler knows no more of these bits than that they are there: what was computed from them is
// computed again, and takes no registers in between.
__device__ __forceinline__ void forget(uint32_t& bits) {
    asm volatile("" : "+r"(bits));
}

// The upper half of a product.
__device__ __forceinline__ uint32_t upper_product(uint32_t a, uint32_t b) {
    return __umulhi(a, b);
}
__device__ __forceinline__ uint64_t upper_product(uint64_t a, uint64_t b) {
    return __umul64hi(a, b);
}

template <class T>
__device__ __forceinline__ T shuffle_xor(T value, unsigned mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}

// What the first of so many lanes has: a power of two, of which a warp has a whole number.
template <class T>
__device__ __forceinline__ T shuffle_first(T value, unsigned lanes) {
    return __shfl_sync(0xffffffffu, value, 0, static_cast<int>(lanes));
}
__device__ __forceinline__ bool any_in_warp(bool value) {
    return __any_sync(0xffffffffu, value);
}

// Lets the next kernel of the stream begin, if it is launched early. Blocks that begin take room
// and issue slots: more blocks of this kernel had better end first. As measured on an H200, which
// has room for 1056 of 256 threads at once.
template <unsigned most_blocks = 1056>
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= most_blocks) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Where it was launched early, a kernel may begin before the one ahead of it in the stream has
// ended, and waits here for that. Before, it touches nothing that kernels write, and lets none
// begin: one that does finds all that was ahead of this kernel done.
__device__ __forceinline__ void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    let_next_begin<32>();
}

}  // namespace twinkle_pack::cuda

#else
#include "on_host.h"
#endif
