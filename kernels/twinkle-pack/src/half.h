#pragma once
// The 16-bit floating point types as stored in memory.

#include <cstddef>
#include <cstdint>

// Marks a formula that the CPU's loops and CUDA kernels share.
#ifdef __CUDACC__
#define PACK_ANYWHERE __host__ __device__
#else
#define PACK_ANYWHERE
#endif

namespace twinkle_pack {

struct BFloat16 {
    uint16_t bits;
};

struct Float16 {
    uint16_t bits;
};

}  // namespace twinkle_pack
