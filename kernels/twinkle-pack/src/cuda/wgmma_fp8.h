#pragma once
// Products of matrices in fp8 (fp8.h) by four warps together, as in wgmma.h, but A lies in shared
// memory, too, its 64 rows like the columns of B.

#include "cuda/wgmma.h"
#include "fp8.h"

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

// Starts tiles = A * B, or += where `add`, of the 32 elements of each row and column from here on.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define TWINKLE_START(columns, names, a_name, b_name, add_name, ...)                            \
    asm volatile(                                                                               \
        TWINKLE_PRODUCT("m64n" columns "k32", "e4m3.e4m3", names, a_name, b_name, add_name, "") \
        : __VA_ARGS__                                                                           \
        : "l"(columns_at(a)), "l"(columns_at(b)), "r"(int{add}))
#else
#define TWINKLE_START(...)
#endif

__device__ __forceinline__ void start_products(Tile (&tiles)[4], const char* a, const char* b,
                                               bool add) {
    TWINKLE_START("32", TWINKLE_NAMES() "%10, %11, %12, %13, %14, %15", "%16", "%17", "%18",
                  TWINKLE_FOUR(0));
}
__device__ __forceinline__ void start_products(Tile (&tiles)[6], const char* a, const char* b,
                                               bool add) {
    TWINKLE_START("48", TWINKLE_NAMES() TWINKLE_NAMES(1) "%20, %21, %22, %23", "%24", "%25", "%26",
                  TWINKLE_FOUR(0), TWINKLE_TWO(4));
}
__device__ __forceinline__ void start_products(Tile (&tiles)[8], const char* a, const char* b,
                                               bool add) {
    TWINKLE_START("64", TWINKLE_30_NAMES "%30, %31", "%32", "%33", "%34", TWINKLE_EIGHT(0));
}
__device__ __forceinline__ void start_products(Tile (&tiles)[9], const char* a, const char* b,
                                               bool add) {
    TWINKLE_START("72", TWINKLE_30_NAMES "%30, %31, %32, %33, %34, %35", "%36", "%37", "%38",
                  TWINKLE_EIGHT(0), TWINKLE_TILE(tiles[8]));
}

#undef TWINKLE_START

}  // namespace
}  // namespace twinkle_pack::cuda

#else

namespace twinkle_pack::cuda {
namespace {

template <unsigned count>
void make_products(Tile (&tiles)[count], const char* a, const char* b, bool add) {
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    // Of a row or column, in the order of wgmma.h.
    const auto term = [](const char* of, unsigned row, unsigned i) {
        const unsigned place = static_cast<unsigned>(reinterpret_cast<uintptr_t>(of) % 128) + i;
        const char* const first = of - reinterpret_cast<uintptr_t>(of) % 128;
        return double{
            fp8_to_float(static_cast<uint8_t>(first[row * 128 + (place ^ row % 8 * 16)]))};
    };
    for (unsigned j = 0; j < count; ++j) {
        if (!add) tiles[j] = {};
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned row = threadIdx.x / 32 % 4 * 16 + i / 2 * 8 + g;
            const unsigned column = j * 8 + 2 * t + i % 2;
            double sum = tiles[j].at[i];
            for (unsigned k = 0; k < 32; ++k) sum += term(a, row, k) * term(b, column, k);
            tiles[j].at[i] = static_cast<float>(sum);
        }
    }
}
template <unsigned count>
void start_products(Tile (&tiles)[count], const char* a, const char* b, bool add) {
    start_product([&tiles, a, b, add] { make_products(tiles, a, b, add); });
}

}  // namespace
}  // namespace twinkle_pack::cuda

#endif
