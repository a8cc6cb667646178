// AVX2, FMA and F16C: linear layers and attention.
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx2_vector.h"
#include "isa/avx2_linear.h"
#include "isa/avx2_bits.h"
// clang-format on

}  // namespace

void add_avx2_products(RowFunctions& functions) {
    const bool is_amd = __builtin_cpu_is("amd");
    const LinearBorders half = rules::linear_avx2_half;
    add_linear<Avx2, Dot256, Outer256, float>(
        functions, is_amd ? rules::linear_avx2_amd : rules::linear_avx2_intel);
    add_linear<Avx2, Dot256, Outer256, BFloat16>(functions, half);
    add_linear<Avx2, Dot256, Outer256, Float16>(functions, half);
    const int64_t of_half = is_amd ? rules::attention_half_amd : rules::any_rows;
    add_attention<Avx2, Outer256, float>(functions,
                                         is_amd ? rules::attention_avx2_amd : rules::any_rows);
    add_attention<Avx2, Outer256, BFloat16>(functions, of_half);
    add_attention<Avx2, Outer256, Float16>(functions, of_half);
    add_bits<Avx2, float, Bits256>(functions);
    add_bits<Avx2, BFloat16, Bits256>(functions);
    add_bits<Avx2, Float16, Bits256>(functions);
}

}  // namespace twinkle_pack
