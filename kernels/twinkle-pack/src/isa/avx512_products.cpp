// AVX-512 (F, BW, DQ, VL): linear layers and attention.
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

void add_avx512_products(RowFunctions& functions) {
    const bool is_amd = __builtin_cpu_is("amd");
    const LinearBorders borders = is_amd ? rules::linear_avx512_amd : rules::linear_avx512_intel;
    const bool has_fp16 = __builtin_cpu_supports("avx512fp16");
    add_linear<Avx512, Dot512, Outer512, float>(functions, borders);
    add_linear<Avx512, Dot512, Outer512, BFloat16>(functions, borders);
    add_linear<Avx512, Dot512, Outer512, Float16>(functions,
                                                  has_fp16 ? rules::linear_avx512_fp16 : borders);
    add_packed_linear<Avx512, Outer512<float>>(functions);
    functions.panels_near = is_amd;
    const int64_t of_half = is_amd ? rules::attention_half_amd : rules::any_rows;
    add_attention<Avx512, Outer512, float>(functions,
                                           is_amd ? rules::attention_avx512_amd : rules::any_rows);
    add_attention<Avx512, Outer512, BFloat16>(functions, of_half);
    add_attention<Avx512, Outer512, Float16>(functions, has_fp16 ? rules::any_rows : of_half);
}

}  // namespace twinkle_pack
