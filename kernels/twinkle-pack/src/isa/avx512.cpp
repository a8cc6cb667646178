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
    const bool is_amd = __builtin_cpu_is("amd");
    const LinearBorders borders = is_amd ? rules::linear_avx512_amd : rules::linear_avx512_intel;
    const bool has_fp16 = __builtin_cpu_supports("avx512fp16");
    add_linear<float>(functions, borders);
    add_linear<BFloat16>(functions, borders);
    add_linear<Float16>(functions, has_fp16 ? rules::linear_avx512_fp16 : borders);
    add_convolutions<float>(functions);
    add_convolutions<BFloat16>(functions);
    add_convolutions<Float16>(functions);
    add_channels_last(functions);
    const int64_t of_half = is_amd ? rules::attention_half_amd : rules::any_rows;
    add_attention<float>(functions, is_amd ? rules::attention_avx512_amd : rules::any_rows);
    add_attention<BFloat16>(functions, of_half);
    add_attention<Float16>(functions, has_fp16 ? rules::any_rows : of_half);
}

}  // namespace twinkle_pack
