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
#include "isa/avx512_linear.h"
#include "isa/avx512_bf16_vector.h"
// clang-format on

inline __m512bh pairs(__m512i bits) {
    return (__m512bh)bits;
}

// Adds two products at a time.
struct DotPairs : DotSums512 {
    using T = BFloat16;
    using in = __m512i;
    static constexpr int64_t step = 32;

    static in load(const T* from) { return _mm512_loadu_si512(from); }
    static in load_tail(const T* from, int64_t n) {
        return _mm512_maskz_loadu_epi16((__mmask32)((uint64_t{1} << n) - 1), from);
    }
    static reg dot(in a, in b, reg sum) { return _mm512_dpbf16_ps(sum, pairs(a), pairs(b)); }
};

struct OuterPairs : GroupSums512 {
    using T = BFloat16;
    using Dot = DotPairs;
    static constexpr int64_t per_group = 2;

    static reg fma(__m512i a, __m512i b, reg sum) {
        return _mm512_dpbf16_ps(sum, pairs(a), pairs(b));
    }
    static __m512i groups(const T* from) { return DotPairs::load(from); }
    static __m512i groups(const T* from, int64_t n) { return DotPairs::load_tail(from, n); }
    static void pack_columns(int32_t* panel, const T* weight, int64_t stride, int64_t columns,
                             int64_t depth) {
        transpose_panel<OuterPairs>(panel, weight, stride, columns, depth);
    }
    static void pack_pixels(int32_t* panel, const T* x, const int64_t* offsets, int64_t depth,
                            const Source* sources, int64_t count) {
        for (int64_t s = 0; s < count; ++s) {
            const __mmask16 mask = Avx512::first(sources[s].count);
            const T* const from = x + sources[s].offset;
            for (int64_t k = 0; k < depth; k += 2) {
                const __m512i low = widened(from + offsets[k], mask);
                const __m512i high =
                    k + 1 < depth ? widened(from + offsets[k + 1], mask) : _mm512_setzero_si512();
                const __m512i both = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
                int32_t* const to = panel + k / 2 * panel_columns + sources[s].lane;
                // As for other types.
                if (sources[s].lane <= 16)
                    _mm512_storeu_si512(to, both);
                else
                    _mm512_mask_storeu_epi32(to, mask, both);
            }
        }
    }
    static __m512i widened(const T* from, __mmask16 mask) {
        return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
    }
    static void pack_row(int32_t* to, const T* row, int64_t depth) {
        int64_t k = 0;
        for (; k + 32 <= depth; k += 32) _mm512_storeu_si512(to + k / 2, groups(row + k));
        if (k < depth) _mm512_storeu_si512(to + k / 2, groups(row + k, depth - k));
    }
};

// What multiplies where channels of images lie last (loops/conv_last_weights.h).
struct LastPairs512 {
    using T = BFloat16;
    using factor = __m512i;
    static constexpr int64_t per_group = 2;

    static factor broadcast(const T* from) {
        int32_t both;
        __builtin_memcpy(&both, from, sizeof both);
        return _mm512_set1_epi32(both);
    }
    static factor load(const float* from) { return _mm512_load_si512(from); }
    static __m512 fma(factor a, factor b, __m512 sum) {
        return _mm512_dpbf16_ps(sum, pairs(a), pairs(b));
    }

    template <bool by_channel>
    static void transpose_to(const T* from, int64_t stride, int64_t rows, int64_t count, float* to,
                             const int64_t* places) {
        __m512i all[16];
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r)
            all[r] =
                r < rows ? loaded<by_channel>(from + r * stride, count) : _mm512_setzero_si512();
        transpose(all);
#pragma GCC unroll 16
        for (int d = 0; d < 16; ++d) {
            if constexpr (by_channel) {
                if (2 * d < count) _mm512_store_si512(to + places[2 * d] / 2 * last_lanes, all[d]);
            } else if (d < count) {
                put(to + places[d] / 2 * last_lanes, all[d], places[d] % 2 != 0);
            }
        }
    }

private:
    template <bool by_channel>
    static __m512i loaded(const T* from, int64_t count) {
        if constexpr (by_channel)
            return DotPairs::load_tail(from, count);
        else
            return OuterPairs::widened(from, Avx512::first(count));
    }
    // The second channel of a pair joins the first one, which was there before.
    static void put(float* to, __m512i value, bool is_second) {
        if (is_second) value = _mm512_or_si512(_mm512_load_si512(to), _mm512_slli_epi32(value, 16));
        _mm512_store_si512(to, value);
    }
};

}  // namespace

void add_avx512_bf16(RowFunctions& functions) {
    using V = Avx512Bf16;
    functions.isa = "avx512bf16";
    add_elementwise<V, V, BFloat16>(functions);
    add_mixed<V, BFloat16, float, BFloat16, Float16>(functions);
    constexpr int bfloat16 = index_of<BFloat16>;
    functions.conv_dense[bfloat16] = conv_dense<V, OuterPairs>;
    functions.conv_depthwise[bfloat16] = conv_depthwise<V, BFloat16>;
    add_last_convolutions<V, LastPairs512>(functions);
    functions.max_pool_last[bfloat16] = max_pool_last<Avx512, BFloat16>;  // V makes denormals 0
    functions.linear_few[bfloat16] = linear_few<V, DotPairs>;
    functions.linear_many[bfloat16] = linear_many<V, OuterPairs>;
    functions.linear_borders[bfloat16] = rules::linear_bf16;
    add_packed_linear<V, OuterPairs>(functions);
    functions.attention[bfloat16] = attention<V, OuterPairs>;
}

}  // namespace twinkle_pack
