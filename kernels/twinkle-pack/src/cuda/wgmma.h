#pragma once
// Products of matrices by four warps together (compute capability 9.0 alone: code for sm_90a).
// Without nvcc, the same products by the threads of tests/pack/on_host/on_host.h, at once.
//
// Of the product a warp has tiles of 16 rows and 8 columns, and of A its 16 rows, as in mma.h. B
// lies in shared memory: 128 bytes of each column, eight columns after 1024 bytes, the first at an
// address that 1024 divides; of column n the 16 bytes i lie at place i ^ n % 8.

#include "cuda/mma.h"

#ifdef __CUDACC__

#define TWINKLE_TILE(tile) "+f"(tile.at[0]), "+f"(tile.at[1]), "+f"(tile.at[2]), "+f"(tile.at[3])

namespace twinkle_pack::cuda {
namespace {

// Of B in shared memory, 16 elements of each column: layout, distance of eight columns, address.
__device__ __forceinline__ uint64_t columns_at(const char* shared) {
    constexpr uint64_t swizzled = uint64_t{1} << 62, eight_columns = uint64_t{1024 / 16} << 32;
    const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    return swizzled | eight_columns | (address & 0x3ffff) >> 4;
}

// Starts tiles = A * B, or += where `add`, of the 16 elements of each column from here on.
__device__ __forceinline__ void start_products(Tile (&tiles)[8], const uint32_t (&a)[4],
                                               const char* b, bool add, BFloat16) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 "
        "}, {%32, %33, %34, %35}, %36, add, 1, 1, 0;\n"
        "}"
        : TWINKLE_TILE(tiles[0]), TWINKLE_TILE(tiles[1]), TWINKLE_TILE(tiles[2]),
          TWINKLE_TILE(tiles[3]), TWINKLE_TILE(tiles[4]), TWINKLE_TILE(tiles[5]),
          TWINKLE_TILE(tiles[6]), TWINKLE_TILE(tiles[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns_at(b)), "r"(int{add}));
#endif
}
__device__ __forceinline__ void start_products(Tile (&tiles)[8], const uint32_t (&a)[4],
                                               const char* b, bool add, Float16) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31 "
        "}, {%32, %33, %34, %35}, %36, add, 1, 1, 0;\n"
        "}"
        : TWINKLE_TILE(tiles[0]), TWINKLE_TILE(tiles[1]), TWINKLE_TILE(tiles[2]),
          TWINKLE_TILE(tiles[3]), TWINKLE_TILE(tiles[4]), TWINKLE_TILE(tiles[5]),
          TWINKLE_TILE(tiles[6]), TWINKLE_TILE(tiles[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns_at(b)), "r"(int{add}));
#endif
}

__device__ __forceinline__ void start_products(Tile (&tiles)[16], const uint32_t (&a)[4],
                                               const char* b, bool add, BFloat16) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile(
        "{\n"
        ".reg .pred add;\n"
        "setp.ne.b32 add, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63 "
        "}, {%64, %65, %66, %67}, %68, add, 1, 1, 0;\n"
        "}"
        : TWINKLE_TILE(tiles[0]), TWINKLE_TILE(tiles[1]), TWINKLE_TILE(tiles[2]),
          TWINKLE_TILE(tiles[3]), TWINKLE_TILE(tiles[4]), TWINKLE_TILE(tiles[5]),
          TWINKLE_TILE(tiles[6]), TWINKLE_TILE(tiles[7]), TWINKLE_TILE(tiles[8]),
          TWINKLE_TILE(tiles[9]), TWINKLE_TILE(tiles[10]), TWINKLE_TILE(tiles[11]),
          TWINKLE_TILE(tiles[12]), TWINKLE_TILE(tiles[13]), TWINKLE_TILE(tiles[14]),
          TWINKLE_TILE(tiles[15])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns_at(b)), "r"(int{add}));
#endif
}

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
// What this thread has written to shared memory, products see after a barrier of the block.
__device__ __forceinline__ void show_to_products() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda

#undef TWINKLE_TILE

#else

namespace twinkle_pack::cuda {
namespace {

template <class T, unsigned count>
void start_products(Tile (&tiles)[count], const uint32_t (&a)[4], const char* b, bool add, T type) {
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
inline void before_products() {}
inline void end_products() {}
template <int, unsigned count>
void wait_for_products(Tile (&)[count]) {}
inline void show_to_products() {}

}  // namespace
}  // namespace twinkle_pack::cuda

#endif
