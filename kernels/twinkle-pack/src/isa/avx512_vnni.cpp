// AVX-512 with VNNI, which sums four products of bytes in one instruction: unsigned ones of the
// weight, signed ones of x.
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

template <Bits kind>
struct Bits512 {
    using ints = __m512i;
    using floats = __m512;
    static constexpr int rows = 6, blocks = 2, few_rows = 3, few_blocks = 4;

    static floats zero() { return _mm512_setzero_ps(); }
    static ints begin(int32_t value) { return _mm512_set1_epi32(value); }
    static floats load(const float* from) { return _mm512_loadu_ps(from); }
    static void store(float* to, floats all) { _mm512_storeu_ps(to, all); }
    static floats add(floats sum, ints products, floats scales, float scale) {
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(products),
                               _mm512_mul_ps(scales, _mm512_set1_ps(scale)), sum);
    }

    template <int rows, int blocks>
    static inline __attribute__((always_inline)) void add_four(const __m512i* w,
                                                               const int8_t* const* x, int64_t at,
                                                               ints (&sum)[rows][blocks]) {
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            int32_t four;
            __builtin_memcpy(&four, x[r] + at, sizeof four);
            const __m512i all = _mm512_set1_epi32(four);
#pragma GCC unroll 8
            for (int b = 0; b < blocks; ++b) sum[r][b] = _mm512_dpbusd_epi32(sum[r][b], w[b], all);
        }
    }
    template <int rows, int blocks>
    static inline __attribute__((always_inline)) void add_group(const uint8_t* const* w,
                                                                const int8_t* const* x,
                                                                ints (&sum)[rows][blocks],
                                                                int64_t ahead) {
        const __m512i mask = _mm512_set1_epi8(15);
        for (int64_t k = 0; k < bits_group_bytes(kind) / 64; ++k) {
            __m512i low[blocks], high[blocks];
#pragma GCC unroll 8
            for (int b = 0; b < blocks; ++b) {
                low[b] = _mm512_loadu_si512(w[b] + 64 * k);
                if (ahead) __builtin_prefetch(w[b] + 64 * k + ahead, 0, 2);
                if constexpr (kind == Bits::int4) {
                    high[b] = _mm512_and_si512(_mm512_srli_epi16(low[b], 4), mask);
                    low[b] = _mm512_and_si512(low[b], mask);
                }
            }
            add_four<rows, blocks>(low, x, 4 * k, sum);
            if constexpr (kind == Bits::int4)
                add_four<rows, blocks>(high, x, bits_group / 2 + 4 * k, sum);
        }
    }
};

}  // namespace

void add_avx512_vnni(RowFunctions& functions) {
    functions.isa = "avx512vnni";
    add_bits<Avx512, float, Bits512>(functions);
    add_bits<Avx512, BFloat16, Bits512>(functions);
    add_bits<Avx512, Float16, Bits512>(functions);
}

}  // namespace twinkle_pack
