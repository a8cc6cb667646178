// AVX-512 with AVX512_BF16, which rounds to bfloat16 in one instruction. (That flushes denormal
// floats, below 1.2e-38, to zero.)
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
#include "isa/avx512_vector.h"
// clang-format on

struct Avx512Bf16 : Avx512 {
    using Avx512::store;
    static void store(BFloat16* to, reg value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(value));
    }

    template <class T>
    static reg rounded(reg value) {
        if constexpr (__is_same(T, BFloat16))
            return _mm512_castsi512_ps(
                _mm512_slli_epi32(_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(value)), 16));
        else
            return Avx512::rounded<T>(value);
    }
};

}  // namespace

void add_avx512_bf16(RowFunctions& functions) {
    using V = Avx512Bf16;
    functions.isa = "avx512bf16";
    add_elementwise<V, V, BFloat16>(functions);
    add_mixed<V, BFloat16, float, BFloat16, Float16>(functions);
}

}  // namespace twinkle_pack
