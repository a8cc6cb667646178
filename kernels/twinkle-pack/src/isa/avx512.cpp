// AVX-512 (F, BW, DQ, VL).
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx512_vector.h"
#include "isa/avx512_linear.h"
// clang-format on

}  // namespace

void add_avx512(RowFunctions& functions) {
    add_float_functions<Avx512, VectorExtension<double, int64_t, 64, true>>(functions, "avx512");
    // MKL and oneDNN, which LibTorch multiplies by, reach what Intel's CPUs can do where rows are
    // many, and in float32 half of what AMD's can (measured on Sapphire Rapids and Zen 4).
    const int64_t many = __builtin_cpu_is("amd") ? any_rows : 128;
    const bool has_fp16 = __builtin_cpu_supports("avx512fp16");
    add_linear<float>(functions, {48, many});
    add_linear<BFloat16>(functions, {48, many});
    add_linear<Float16>(functions, has_fp16 ? LinearBorders{8, 0} : LinearBorders{48, many});
    add_convolutions<float>(functions);
    add_convolutions<BFloat16>(functions);
    add_convolutions<Float16>(functions);
}

}  // namespace twinkle_pack
