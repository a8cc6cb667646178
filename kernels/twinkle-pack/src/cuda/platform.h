#pragma once
// What the kernels use of CUDA. Without nvcc, tests/pack/on_host.h gives the same names and runs
// the kernels on the CPU, thread by thread.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "half.h"

namespace twinkle_pack::cuda {

// A 16-byte load of what is read once, and of what other blocks read too.
__device__ __forceinline__ uint4 load_once(const uint4* from) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}
__device__ __forceinline__ uint4 load_cached(const uint4* from) {
    return __ldg(from);
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

inline void check_cuda(cudaError_t code) {
    if (code != cudaSuccess)
        throw std::runtime_error(std::string("twinkle-pack: CUDA: ") + cudaGetErrorString(code));
}

struct Grid {
    uint64_t x = 1, y = 1;
};

template <class... Parameters>
void launch(void* stream, void (*kernel)(Parameters...), Grid grid, unsigned threads,
            std::type_identity_t<Parameters>... parameters) {
    void* pointers[] = {&parameters...};
    check_cuda(cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                                dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y)),
                                dim3(threads), pointers, 0, static_cast<cudaStream_t>(stream)));
}

struct Card {
    int multiprocessors;
};

// Asked for once for each GPU of the process.
inline Card card(int device) {
    constexpr int most = 64;
    static Card known[most];
    Card found = device < most ? known[device] : Card{};
    if (found.multiprocessors) return found;
    check_cuda(
        cudaDeviceGetAttribute(&found.multiprocessors, cudaDevAttrMultiProcessorCount, device));
    if (device < most) known[device] = found;
    return found;
}

}  // namespace twinkle_pack::cuda

#else
#include "on_host.h"
#endif
