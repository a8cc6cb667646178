#pragma once
// Products of small matrices by a warp (compute capability 8.0 and later). Without nvcc, the same
// products by the threads of tests/pack/on_host/on_host.h.
//
// A tile of the product has 16 rows and 8 columns: A's rows by B's columns. With g = lane / 4 and
// t = lane % 4 a lane holds of A the rows g and g + 8, of B the column g, and of the product
// {row g, row g + 8} x {column 2t, 2t + 1}. In which order the terms of a sum are taken does not
// matter, so a lane gives any 16 bytes of its rows and of its column that lie at the same place.

#include "cuda/platform.h"

namespace twinkle_pack::cuda {
namespace {

struct Tile {
    float at[4];  // (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
};

}  // namespace
}  // namespace twinkle_pack::cuda

#ifdef __CUDACC__

namespace twinkle_pack::cuda {
namespace {

// tile += A * B, of 16 elements of each row and column: the words x and y of 16 bytes, or z and w.
__device__ __forceinline__ void multiply_words(Tile& tile, uint32_t a0, uint32_t a1, uint32_t a2,
                                               uint32_t a3, uint32_t b0, uint32_t b1, BFloat16) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(tile.at[0]), "+f"(tile.at[1]), "+f"(tile.at[2]), "+f"(tile.at[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}
__device__ __forceinline__ void multiply_words(Tile& tile, uint32_t a0, uint32_t a1, uint32_t a2,
                                               uint32_t a3, uint32_t b0, uint32_t b1, Float16) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(tile.at[0]), "+f"(tile.at[1]), "+f"(tile.at[2]), "+f"(tile.at[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}
// The same of 8 elements, of which the upper 19 bits are read (TF32).
__device__ __forceinline__ void multiply_words(Tile& tile, uint32_t a0, uint32_t a1, uint32_t a2,
                                               uint32_t a3, uint32_t b0, uint32_t b1, float) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(tile.at[0]), "+f"(tile.at[1]), "+f"(tile.at[2]), "+f"(tile.at[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

}  // namespace
}  // namespace twinkle_pack::cuda

#else

namespace twinkle_pack::cuda {
namespace {

inline void terms_of(uint32_t word, BFloat16, float (&terms)[2]) {
    terms[0] = to_float(BFloat16{static_cast<uint16_t>(word)});
    terms[1] = to_float(BFloat16{static_cast<uint16_t>(word >> 16)});
}
inline void terms_of(uint32_t word, Float16, float (&terms)[2]) {
    terms[0] = to_float(Float16{static_cast<uint16_t>(word)});
    terms[1] = to_float(Float16{static_cast<uint16_t>(word >> 16)});
}
inline void terms_of(uint32_t word, float, float (&terms)[1]) {
    word &= 0xffffe000u;
    std::memcpy(terms, &word, sizeof terms);
}

template <class T>
void multiply_words(Tile& tile, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                    uint32_t b1, T) {
    constexpr int in_word = 4 / sizeof(T);
    const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const auto both = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
    // Words of a row or a column, from the four lanes that have it.
    const auto gathered = [&](uint64_t words, unsigned of, float(&terms)[8 * in_word]) {
        for (unsigned s = 0; s < 4; ++s) {
            const uint64_t word = exchange(words, of * 4 + s);
            float part[in_word];
            for (int half = 0; half < 2; ++half) {
                terms_of(static_cast<uint32_t>(half == 0 ? word : word >> 32), T(), part);
                for (int i = 0; i < in_word; ++i)
                    terms[(s * 2 + static_cast<unsigned>(half)) * in_word +
                          static_cast<unsigned>(i)] = part[i];
            }
        }
    };
    float rows[2][8 * in_word], columns[2][8 * in_word];
    gathered(both(a0, a2), g, rows[0]);
    gathered(both(a1, a3), g, rows[1]);
    gathered(both(b0, b1), 2 * t, columns[0]);
    gathered(both(b0, b1), 2 * t + 1, columns[1]);
    for (int i = 0; i < 4; ++i) {
        double sum = tile.at[i];
        for (int k = 0; k < 8 * in_word; ++k) sum += double{rows[i / 2][k]} * columns[i % 2][k];
        tile.at[i] = static_cast<float>(sum);
    }
}

}  // namespace
}  // namespace twinkle_pack::cuda

#endif

namespace twinkle_pack::cuda {
namespace {

// tile += A * B, of the elements of 16 bytes of four lanes: `a` of row g, `below` of row g + 8, `b`
// of column g.
template <class T>
__device__ __forceinline__ void multiply(Tile& tile, const uint4& a, const uint4& below,
                                         const uint4& b) {
    multiply_words(tile, a.x, below.x, a.y, below.y, b.x, b.y, T());
    multiply_words(tile, a.z, below.z, a.w, below.w, b.z, b.w, T());
}

}  // namespace
}  // namespace twinkle_pack::cuda
