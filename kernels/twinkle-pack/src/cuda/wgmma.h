#pragma once
// Products of matrices by four warps together (compute capability 9.0 alone: code for sm_90a).
// Without nvcc, the same products by the threads of tests/pack/on_host/on_host.h, when they are
// waited for.
//
// Of the product a warp has tiles of 16 rows and 8 columns, and of A its 16 rows, as in mma.h. B
// lies in shared memory: 128 bytes of each column, eight columns after 1024 bytes, the first at an
// address that 1024 divides; of column n the 16 bytes i lie at place i ^ n % 8.

#include "cuda/mma.h"

#ifdef __CUDACC__

#include "cuda/wgmma_operands.h"

namespace twinkle_pack::cuda {
namespace {

// Of B in shared memory, 16 elements of each column: layout, distance of eight columns, address.
__device__ __forceinline__ uint64_t columns_at(const char* shared) {
    constexpr uint64_t swizzled = uint64_t{1} << 62, eight_columns = uint64_t{1024 / 16} << 32;
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    return swizzled | eight_columns | (address & 0x3ffff) >> 4;
}

// Starts tiles = A * B, or += where `add`, of the 16 elements of each column from here on.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define TWINKLE_START(columns, type, names, a_names, b_name, add_name, ...)                   \
    asm volatile(TWINKLE_PRODUCT("m64n" columns "k16", type "." type, names, a_names, b_name, \
                                 add_name, ", 0")                                             \
                 : __VA_ARGS__                                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns_at(b)), "r"(int{add}))
#else
#define TWINKLE_START(...)
#endif
#define TWINKLE_START_64(type)                                                                   \
    TWINKLE_START("64", type, TWINKLE_30_NAMES "%30, %31", "{%32, %33, %34, %35}", "%36", "%37", \
                  TWINKLE_EIGHT(0))

__device__ __forceinline__ void start_products(Tile (&tiles)[8], const uint32_t (&a)[4],
                                               const char* b, bool add, BFloat16) {
    TWINKLE_START_64("bf16");
}
__device__ __forceinline__ void start_products(Tile (&tiles)[8], const uint32_t (&a)[4],
                                               const char* b, bool add, Float16) {
    TWINKLE_START_64("f16");
}
__device__ __forceinline__ void start_products(Tile (&tiles)[16], const uint32_t (&a)[4],
                                               const char* b, bool add, BFloat16) {
    TWINKLE_START("128", "bf16", TWINKLE_60_NAMES "%60, %61, %62, %63", "{%64, %65, %66, %67}",
                  "%68", "%69", TWINKLE_SIXTEEN(0));
}
__device__ __forceinline__ void start_products(Tile (&tiles)[24], const uint32_t (&a)[4],
                                               const char* b, bool add, BFloat16) {
    TWINKLE_START("192", "bf16", TWINKLE_90_NAMES "%90, %91, %92, %93, %94, %95",
                  "{%96, %97, %98, %99}", "%100", "%101", TWINKLE_SIXTEEN(0), TWINKLE_EIGHT(16));
}
__device__ __forceinline__ void start_products(Tile (&tiles)[32], const uint32_t (&a)[4],
                                               const char* b, bool add, BFloat16) {
    TWINKLE_START("256", "bf16", TWINKLE_120_NAMES "%120, %121, %122, %123, %124, %125, %126, %127",
                  "{%128, %129, %130, %131}", "%132", "%133", TWINKLE_SIXTEEN(0),
                  TWINKLE_SIXTEEN(16));
}

#undef TWINKLE_START_64
#undef TWINKLE_START

// What a warp has written to its registers, products that start next see.
__device__ __forceinline__ void before_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void end_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Returns when all groups of products but the latest `pending` are done; these tiles are theirs.
template <int pending, unsigned count>
__device__ __forceinline__ void wait_for_products(Tile (&tiles)[count]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
#endif
#pragma unroll
    for (Tile& tile : tiles) asm volatile("" : TWINKLE_TILE(tile)::"memory");
}
// From here on a thread has so many registers, more or fewer than before. By four warps together;
// returns when others have left enough.
template <int count>
__device__ __forceinline__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
#endif
}
template <int count>
__device__ __forceinline__ void leave_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
#endif
}
// What this thread has written to shared memory, or knows of, products see after a barrier of the
// block, or its own that start later.
__device__ __forceinline__ void show_to_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda

#else

namespace twinkle_pack::cuda {
namespace {

template <class T, unsigned count>
void make_products(Tile (&tiles)[count], const uint32_t (&a)[4], const char* b, bool add, T type) {
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto word_at = [&](unsigned column, unsigned word) {
        const uintptr_t place = reinterpret_cast<uintptr_t>(b) % 128 + word * 4;
        const char* const first = b - reinterpret_cast<uintptr_t>(b) % 128;
        uint32_t found;
        std::memcpy(&found, first + column * 128 + (place ^ column % 8 * 16), sizeof found);
        return found;
    };
    for (unsigned j = 0; j < count; ++j) {
        if (!add) tiles[j] = {};
        multiply_words(tiles[j], a[0], a[1], a[2], a[3], word_at(j * 8 + g, t),
                       word_at(j * 8 + g, t + 4), type);
    }
}
template <class T, unsigned count>
void start_products(Tile (&tiles)[count], const uint32_t (&a)[4], const char* b, bool add, T type) {
    start_product([&tiles, a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], b, add, type] {
        make_products(tiles, {a0, a1, a2, a3}, b, add, type);
    });
}
inline void before_products() {}
template <int pending, unsigned count>
void wait_for_products(Tile (&)[count]) {
    make_started_products(static_cast<unsigned>(pending));
}
template <int>
void take_registers() {}
template <int>
void leave_registers() {}
inline void show_to_products() {}

}  // namespace
}  // namespace twinkle_pack::cuda

#endif
