#pragma once
// What a call gets that brings no configuration: borders that were measured on the machines named
// here. The package's tuning.toml says which of them a call may bring, so that `twinkle tune` finds
// others on other machines.

#include <cstdint>

namespace twinkle_pack {

// The keyword arguments of operators that are tuned. 0: as the rules below say.
struct Config {
    int64_t way = 0;      // of a linear layer: Way
    int64_t grain = 0;    // the least work of a thread: elements, or products of a linear layer
    int64_t reading = 0;  // on a GPU: 1 + Reading (cuda/reading.h)
};

enum class Way : int64_t { by_rule, few, many, libtorch };

// The most rows for each way of a linear layer; beyond both, LibTorch's is as fast. Zero: there is
// no such way.
struct LinearBorders {
    int64_t few, many;  // few: at most most_few_rows
};

namespace rules {

constexpr int64_t any_rows = int64_t{1} << 40;

// Less work than this is not worth waking another thread.
constexpr int64_t grain_elements = 16384;
constexpr int64_t grain_products = 1 << 16;

// Sixteen registers are too few for dot products of more rows. MKL reaches in float32 what AMD's
// CPUs can from some hundred rows on, and was not measured on Intel's; LibTorch widens half
// precisions slowly where the CPU does not compute in them (measured on Zen 3).
constexpr LinearBorders linear_avx2_amd{4, 128}, linear_avx2_intel{4, 0};
constexpr LinearBorders linear_avx2_half{4, any_rows};
// MKL and oneDNN, which LibTorch multiplies by, reach what Intel's CPUs can do where rows are many,
// and in float32 half of what AMD's can (measured on Sapphire Rapids and Zen 4).
constexpr LinearBorders linear_avx512_amd{48, any_rows}, linear_avx512_intel{48, 128};
constexpr LinearBorders linear_avx512_fp16{8, 0};  // float16 where the CPU computes in it
// AMX, which oneDNN uses, too: it copies the weight in every call, so that it takes many rows to be
// as fast (measured on a Xeon of 2024).
constexpr LinearBorders linear_bf16{40, 256}, linear_bf16_amx{2, 192};

// Of weights in panels by tiles of AMX: fewer rows are read faster by vectors (measured on a Xeon
// of 2023).
constexpr int64_t least_panel_tile_rows = 3;

// The least rows of queries for which attention is computed here. LibTorch multiplies by MKL, which
// has no AVX-512 on AMD's CPUs, and in float32 whatever the dtype is (measured on Zen 4, with AVX2
// too). On Intel's it has, and oneDNN's products of half precisions.
constexpr int64_t attention_avx512_amd = 2, attention_avx2_amd = 16, attention_half_amd = 1;

// Of a 3 x 3 convolution by fewer products: with fewer pixels its weights take as long as what is
// saved, and with less work the second waking of threads (measured on Zen 4). Not on the number of
// threads: results must not depend on that.
constexpr int64_t winograd_least_pixels = 64, winograd_least_products = 8'000'000;

// Of linear layers with fewer bits: tiles of AMX have 16 rows, however many there are.
constexpr int64_t least_bits_tile_rows = 12;

// A GPU's results between these shares of its L2 cache: what is read leaves it first. With more
// results than the cache keeps, reading as usual takes 2 to 5 % less time on an H200, while results
// that would stay cost a kernel that reads so, and the next that reads them, up to 8 % more. Few
// results leave room for all: both take the same time.
constexpr uint64_t once_from(uint64_t cache) {
    return cache / 64;
}
constexpr uint64_t once_below(uint64_t cache) {
    return cache / 4 * 3;
}

}  // namespace rules
}  // namespace twinkle_pack
