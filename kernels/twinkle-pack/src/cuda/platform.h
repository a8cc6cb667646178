#pragma once
// The parts of CUDA that device code uses. Without nvcc, tests/pack/on_host/on_host.h provides the
// same names and runs the kernels on the CPU, thread by thread.

#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "half.h"

namespace twinkle_pack::cuda {

// 16-byte loads: one evicted first from the L2 cache, and one that stays. Not ld.global.nc: its
// data must never change, so compilers move it before wait_for_earlier().
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
// Converts two at once, which is one instruction.
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

// Hides the origin of these bits from the compiler: values computed from them are computed again
// instead of being kept in registers.
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

// The value of the first of every `lanes` lanes; `lanes` is a power of two up to a warp's.
template <class T>
__device__ __forceinline__ T shuffle_first(T value, unsigned lanes) {
    return __shfl_sync(0xffffffffu, value, 0, static_cast<int>(lanes));
}
__device__ __forceinline__ bool any_in_warp(bool value) {
    return __any_sync(0xffffffffu, value);
}

// A barrier of a warp's threads.
__device__ __forceinline__ void meet_warp() {
    __syncwarp();
}

// Lets the next kernel of the stream begin, if it is launched early. Its blocks take room and issue
// slots: if this kernel has more blocks than that, they had better end first. Measured on an H200,
// which has room for 1056 blocks of 256 threads.
template <unsigned most_blocks = 1056>
__device__ __forceinline__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    if (gridDim.x <= most_blocks) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A kernel launched early may begin before the preceding one in the stream has ended; it waits here
// for that end. Before, it must touch nothing that kernels write, and let none begin: a kernel that
// begins finds everything before this kernel done.
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
