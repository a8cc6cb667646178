// AVX2, FMA and F16C.
#include <immintrin.h>

#include "half.h"
#include "isa/functions.h"

namespace twinkle_pack {
namespace {

// clang-format off
#include "loops/all.h"
#include "isa/vector_extension.h"
// clang-format on

// The bits of a float32 rounded to the nearest bfloat16 (ties to even), in the upper half. A NaN
// stays one: it comes from a bfloat16 or an invalid operation, so that its lower half is zero and
// cannot carry.
inline __m256i bfloat16_bits(__m256 value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    return _mm256_add_epi32(bits, bias);
}

struct Avx2 {
    using scalar = float;
    using reg = __m256;
    static constexpr int64_t width = 8;
    static constexpr bool precise = false;

    static reg set1(float value) { return _mm256_set1_ps(value); }
    static reg add(reg a, reg b) { return _mm256_add_ps(a, b); }
    static reg mul(reg a, reg b) { return _mm256_mul_ps(a, b); }
    static reg div(reg a, reg b) { return _mm256_div_ps(a, b); }
    static reg fma(reg a, reg b, reg c) { return _mm256_fmadd_ps(a, b, c); }
    static reg sub(reg a, reg b) { return _mm256_sub_ps(a, b); }
    static reg fmsub(reg a, reg b, reg c) { return _mm256_fmsub_ps(a, b, c); }
    using Scale = SplitScale<Avx2>;
    static reg product(reg x, Scale scale, reg weight) {
        return fused_product<Avx2>(x, scale, weight);
    }
    static reg normalized(reg x, Scale minus_mean, Scale scale, reg weight, reg bias) {
        return fused_normalized<Avx2>(x, minus_mean, scale, weight, bias);
    }

    static double sum(reg a) {
        const __m256d pairs = _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                                            _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1)));
        const __m128d two =
            _mm_add_pd(_mm256_castpd256_pd128(pairs), _mm256_extractf128_pd(pairs, 1));
        return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
    }

    static reg load(const float* from) { return _mm256_loadu_ps(from); }
    static reg load(const BFloat16* from) {
        const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
    }
    static reg load(const Float16* from) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }

    static void store(float* to, reg value) { _mm256_storeu_ps(to, value); }
    static __m128i to_bfloat16(reg value) {
        const __m256i bits = _mm256_srli_epi32(bfloat16_bits(value), 16);
        const __m256i packed = _mm256_packus_epi32(bits, bits);  // within each half
        return _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08));
    }
    static void store(BFloat16* to, reg value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to), to_bfloat16(value));
    }
    static void store(Float16* to, reg value) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                         _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }

    static void accumulate(double* sums, reg value) {
        const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(value));
        const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(value, 1));
        _mm256_storeu_pd(sums, _mm256_add_pd(_mm256_loadu_pd(sums), low));
        _mm256_storeu_pd(sums + 4, _mm256_add_pd(_mm256_loadu_pd(sums + 4), high));
    }

    static reg quotient(reg a, reg b) { return div(a, b); }
    // max and min return their second operand if one is NaN.
    static reg clamp(reg a, float least, float most) {
        return _mm256_min_ps(set1(most), _mm256_max_ps(set1(least), a));
    }
    static reg relu(reg a) { return _mm256_max_ps(set1(0), a); }
    static reg max(reg a, reg b) { return _mm256_max_ps(a, b); }
    static reg larger(reg a, reg b) {
        const reg is_larger =
            _mm256_or_ps(_mm256_cmp_ps(b, a, _CMP_GT_OQ), _mm256_cmp_ps(b, b, _CMP_UNORD_Q));
        return _mm256_blendv_ps(a, b, is_larger);
    }
    // Minus infinity where one of the `n` bytes is zero.
    static reg where(const uint8_t* kept, int64_t n, reg value) {
        int64_t bytes = 0;
        __builtin_memcpy(&bytes, kept, static_cast<size_t>(n));
        const __m256i each = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(bytes));
        const __m256i is_zero = _mm256_cmpeq_epi32(each, _mm256_setzero_si256());
        return _mm256_blendv_ps(value, set1(-__builtin_inff()), _mm256_castsi256_ps(is_zero));
    }
    static reg if_negative(reg x, reg a, reg b) {
        return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, set1(0), _CMP_LT_OQ));
    }
    static reg if_positive(reg x, reg a) {
        return _mm256_and_ps(_mm256_cmp_ps(x, set1(0), _CMP_NLE_UQ), a);
    }
    static reg swap_pairs(reg a) { return _mm256_permute_ps(a, 0xb1); }
    static reg pair_signs() { return _mm256_castsi256_ps(_mm256_set1_epi64x(0x3f800000bf800000)); }

    static void fence() { _mm_sfence(); }
    static void stream(float* to, reg value) { _mm256_stream_ps(to, value); }

    template <class T>
    static reg rounded(reg value) {
        if constexpr (__is_same(T, BFloat16))
            return _mm256_castsi256_ps(_mm256_and_si256(
                bfloat16_bits(value), _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
        else if constexpr (__is_same(T, Float16))
            return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
        else
            return value;
    }

    static reg power_of_two(__m256i k) {
        const __m256i biased = _mm256_add_epi32(k, _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
    }

    static reg exp(reg x) {
        x = clamp(x, -104, 104);
        const reg k = _mm256_round_ps(_mm256_mul_ps(x, set1(1.44269504f)),
                                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const reg r = fma(k, set1(2.12194440e-4f), fma(k, set1(-0.693359375f), x));
        // 2^k in two factors: k may lie outside the exponents of float32.
        const __m256i whole = _mm256_cvtps_epi32(k), half = _mm256_srai_epi32(whole, 1);
        const reg scaled = mul(exp_of_remainder<Avx2>(r), power_of_two(half));
        return mul(scaled, power_of_two(_mm256_sub_epi32(whole, half)));
    }
};

// Linear layers of few rows (loops/linear_few.h): float32, and half precisions that are widened
// while they are loaded.
template <class Element>
struct Dot256 {
    using T = Element;
    using reg = __m256;
    using in = __m256;
    static constexpr int64_t step = 8, most_rows = 2;

    static reg zero() { return _mm256_setzero_ps(); }
    static in load(const T* from) { return Avx2::load(from); }
    static in load_tail(const T* from, int64_t n) { return twinkle_pack::load_tail<Avx2>(from, n); }
    static reg dot(in a, in b, reg sum) { return _mm256_fmadd_ps(a, b, sum); }

    template <int count>
    static inline __attribute__((always_inline)) void add_sums(const reg* sums, float* to) {
        if constexpr (count >= 4) {
            const reg all =
                _mm256_hadd_ps(_mm256_hadd_ps(sums[0], sums[1]), _mm256_hadd_ps(sums[2], sums[3]));
            const __m128 four =
                _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
            _mm_storeu_ps(to, _mm_add_ps(four, _mm_loadu_ps(to)));
            if constexpr (count > 4) add_sums<count - 4>(sums + 4, to + 4);
        } else {
            for (int i = 0; i < count; ++i) to[i] += static_cast<float>(Avx2::sum(sums[i]));
        }
    }
};

// Transposes 8 x 8.
inline __attribute__((always_inline)) void transpose(__m256 (&v)[8]) {
    __m256 t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        t[2 * i] = _mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        t[i] = _mm256_permute2f128_ps(v[i], v[4 + i], 0x20);
        t[4 + i] = _mm256_permute2f128_ps(v[i], v[4 + i], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = t[i];
}

// Outer products, for convolutions (loops/conv_dense.h) and linear layers of many rows
// (loops/linear_many.h): float32, and half precisions that are widened while they are
// copied.
template <class Element>
struct Outer256 {
    using T = Element;
    using Dot = Dot256<float>;
    using reg = __m256;
    static constexpr int64_t lanes = 8, per_group = 1;
    static constexpr int tile_rows = 6;

    static reg zero() { return _mm256_setzero_ps(); }
    static __m256i load(const int32_t* from) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
    }
    static __m256i broadcast(int32_t value) { return _mm256_set1_epi32(value); }
    static reg fma(__m256i a, __m256i b, reg sum) {
        return _mm256_fmadd_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), sum);
    }
    static void store(float* to, reg value) { _mm256_store_ps(to, value); }
    static reg plus(reg value, const float* from) {
        return _mm256_add_ps(value, _mm256_load_ps(from));
    }
    static void add_to(float* sums, reg value) {
        _mm256_storeu_ps(sums, _mm256_add_ps(_mm256_loadu_ps(sums), value));
    }
    static void put(int32_t* to, reg value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_castps_si256(value));
    }
    static void pack_row(int32_t* to, const T* row, int64_t depth) {
        int64_t k = 0;
        for (; k + 8 <= depth; k += 8) put(to + k, Avx2::load(row + k));
        if (k < depth) put(to + k, twinkle_pack::load_tail<Avx2>(row + k, depth - k));
    }
    static void pack_columns(int32_t* panel, const T* weight, int64_t stride, int64_t columns,
                             int64_t depth) {
        for (int64_t half = 0; half < 2 * lanes; half += lanes)
            for (int64_t k = 0; k < depth; k += lanes) {
                const int64_t left = depth - k;
                reg block[lanes];
#pragma GCC unroll 8
                for (int i = 0; i < lanes; ++i) {
                    const T* const from = weight + (half + i) * stride + k;
                    if (half + i >= columns)
                        block[i] = _mm256_setzero_ps();
                    else
                        block[i] = left >= lanes ? Avx2::load(from)
                                                 : twinkle_pack::load_tail<Avx2>(from, left);
                }
                transpose(block);
#pragma GCC unroll 8
                for (int i = 0; i < lanes; ++i) put(panel + (k + i) * 2 * lanes + half, block[i]);
            }
    }
    static void pack_pixels(int32_t* panel, const T* x, const int64_t* offsets, int64_t depth,
                            const Source* sources, int64_t count) {
        for (int64_t k = 0; k < depth; ++k)
            for (int64_t s = 0; s < count; ++s)
                put(panel + k * 2 * lanes + sources[s].lane,
                    load_first<Avx2>(x + offsets[k] + sources[s].offset, sources[s].count));
    }
};

template <class T>
void add_convolutions(RowFunctions& to) {
    to.conv_dense[index_of<T>] = conv_dense<Avx2, Outer256<T>>;
    to.conv_depthwise[index_of<T>] = conv_depthwise<Avx2, T>;
    to.max_pool[index_of<T>] = max_pool<Avx2, T>;
}

// What multiplies where channels of images lie last (loops/conv_last_weights.h).
struct LastProducts256 {
    using T = float;
    using factor = __m256;
    static constexpr int64_t per_group = 1;

    static factor broadcast(const T* from) { return _mm256_set1_ps(*from); }
    static factor load(const float* from) { return _mm256_load_ps(from); }
    static __m256 fma(factor a, factor b, __m256 sum) { return _mm256_fmadd_ps(a, b, sum); }

    template <bool by_channel>
    static void transpose_to(const T* from, int64_t stride, int64_t rows, int64_t count, float* to,
                             const int64_t* places) {
        if (rows >= 8 && count == 8)
            transpose_some<true>(from, stride, 8, 8, to, places);
        else
            transpose_some<false>(from, stride, rows, count, to, places);
    }

private:
    template <bool all>
    static inline __attribute__((always_inline)) void transpose_some(const float* from,
                                                                     int64_t stride, int64_t rows,
                                                                     int64_t depth, float* to,
                                                                     const int64_t* places) {
        __m256 v[8];
#pragma GCC unroll 8
        for (int r = 0; r < 8; ++r)
            v[r] = all        ? _mm256_loadu_ps(from + r * stride)
                   : r < rows ? load_first<Avx2>(from + r * stride, depth)
                              : _mm256_setzero_ps();
        transpose(v);
#pragma GCC unroll 8
        for (int d = 0; d < 8; ++d)
            if (all || d < depth) _mm256_store_ps(to + places[d] * last_lanes, v[d]);
    }
};

inline void add_channels_last(RowFunctions& to) {
    add_last_convolutions<Avx2, LastProducts256>(to);
    to.winograd_weights = winograd_weights<Avx2, LastProducts256>;
    to.conv_winograd = conv_winograd<Avx2, LastProducts256>;
}

// Linear layers with fewer bits (loops/bits_blocks.h).
template <Bits kind>
struct Bits256 {
    struct ints {
        __m256i of[2];  // eight columns each
    };
    struct floats {
        __m256 of[2];
    };
    static constexpr int rows = 4, blocks = 1, few_rows = rows, few_blocks = blocks;

    static floats zero() { return {{_mm256_setzero_ps(), _mm256_setzero_ps()}}; }
    // Of int8, whose bytes get their signs below, sums begin with nothing.
    static ints begin(int32_t value) {
        const __m256i one = _mm256_set1_epi32(kind == Bits::int8 ? 0 : value);
        return {{one, one}};
    }
    static floats load(const float* from) {
        return {{_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8)}};
    }
    static void store(float* to, const floats& all) {
        _mm256_storeu_ps(to, all.of[0]);
        _mm256_storeu_ps(to + 8, all.of[1]);
    }
    static floats add(floats sum, const ints& products, const floats& scales, float scale) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half)
            sum.of[half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products.of[half]),
                                           _mm256_mul_ps(scales.of[half], _mm256_set1_ps(scale)),
                                           sum.of[half]);
        return sum;
    }

    template <int rows, int blocks>
    static inline __attribute__((always_inline)) void add_group(const uint8_t* const* w,
                                                                const int8_t* const* x,
                                                                ints (&sum)[rows][blocks]) {
#pragma GCC unroll 8
        for (int b = 0; b < blocks; ++b)
            if constexpr (kind == Bits::int8)
                add_bytes<rows, blocks>(w[b], x, sum, b);
            else
                add_halves<rows, blocks>(w[b], x, sum, b);
    }

private:
    static __m256i bytes_at(const uint8_t* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    }
    // Four terms, for every column.
    static __m256i terms_at(const int8_t* from) {
        int32_t four;
        __builtin_memcpy(&four, from, sizeof four);
        return _mm256_set1_epi32(four);
    }
    // Pairs of 16-bit sums, joined.
    static __m256i add_pairs(__m256i to, __m256i sums) {
        return _mm256_add_epi32(to, _mm256_madd_epi16(sums, _mm256_set1_epi16(1)));
    }

    // The instruction multiplies bytes without signs by bytes with signs, and adds two products in
    // 16 bits: magnitudes up to 127 on both sides fit, with the weight's sign given to x.
    template <int rows, int blocks>
    static inline __attribute__((always_inline)) void add_bytes(const uint8_t* w,
                                                                const int8_t* const* x,
                                                                ints (&sum)[rows][blocks], int b) {
        for (int64_t k = 0; k < bits_group_bytes(kind) / 64; ++k) {
            __m256i with_sign[2], magnitude[2];
#pragma GCC unroll 2
            for (int half = 0; half < 2; ++half) {
                with_sign[half] =
                    _mm256_xor_si256(bytes_at(w + 64 * k + 32 * half), _mm256_set1_epi8(-128));
                magnitude[half] = _mm256_abs_epi8(with_sign[half]);
            }
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) {
                const __m256i terms = terms_at(x[r] + 4 * k);
#pragma GCC unroll 2
                for (int half = 0; half < 2; ++half) {
                    const __m256i signed_terms = _mm256_sign_epi8(terms, with_sign[half]);
                    sum[r][b].of[half] = add_pairs(
                        sum[r][b].of[half], _mm256_maddubs_epi16(magnitude[half], signed_terms));
                }
            }
        }
    }

    // Products of half a byte are small: 16 bits hold the sums of eight pairs (30480).
    template <int rows, int blocks>
    static inline __attribute__((always_inline)) void add_halves(const uint8_t* w,
                                                                 const int8_t* const* x,
                                                                 ints (&sum)[rows][blocks], int b) {
        static_assert(bits_group_bytes(kind) / 64 <= 8);
        const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; ++upper) {
            __m256i sums[rows][2];
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
            for (int64_t k = 0; k < bits_group_bytes(kind) / 64; ++k) {
                __m256i values[2];
#pragma GCC unroll 2
                for (int half = 0; half < 2; ++half) {
                    const __m256i both = bytes_at(w + 64 * k + 32 * half);
                    values[half] =
                        _mm256_and_si256(upper ? _mm256_srli_epi16(both, 4) : both, mask);
                }
#pragma GCC unroll 8
                for (int r = 0; r < rows; ++r) {
                    const __m256i terms = terms_at(x[r] + upper * (bits_group / 2) + 4 * k);
#pragma GCC unroll 2
                    for (int half = 0; half < 2; ++half)
                        sums[r][half] = _mm256_add_epi16(sums[r][half],
                                                         _mm256_maddubs_epi16(values[half], terms));
                }
            }
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
                for (int half = 0; half < 2; ++half)
                    sum[r][b].of[half] = add_pairs(sum[r][b].of[half], sums[r][half]);
        }
    }
};

template <class T>
void add_attention(RowFunctions& to, int64_t least_rows) {
    to.attention[index_of<T>] = attention<Avx2, Outer256<T>>;
    to.attention_least_rows[index_of<T>] = least_rows;
}

template <class T>
void add_linear(RowFunctions& to, LinearBorders borders) {
    to.linear_few[index_of<T>] = linear_few<Avx2, Dot256<T>>;
    to.linear_many[index_of<T>] = linear_many<Avx2, Outer256<T>>;
    to.linear_borders[index_of<T>] = borders;
}

}  // namespace

void add_avx2(RowFunctions& functions) {
    add_float_functions<Avx2, VectorExtension<double, int64_t, 32, true>>(functions, "avx2");
    const bool is_amd = __builtin_cpu_is("amd");
    add_linear<float>(functions, is_amd ? rules::linear_avx2_amd : rules::linear_avx2_intel);
    add_linear<BFloat16>(functions, rules::linear_avx2_half);
    add_linear<Float16>(functions, rules::linear_avx2_half);
    add_convolutions<float>(functions);
    add_convolutions<BFloat16>(functions);
    add_convolutions<Float16>(functions);
    add_channels_last(functions);
    const int64_t of_half = is_amd ? rules::attention_half_amd : rules::any_rows;
    add_attention<float>(functions, is_amd ? rules::attention_avx2_amd : rules::any_rows);
    add_attention<BFloat16>(functions, of_half);
    add_attention<Float16>(functions, of_half);
    add_bits<Avx2, float, Bits256>(functions);
    add_bits<Avx2, BFloat16, Bits256>(functions);
    add_bits<Avx2, Float16, Bits256>(functions);
}

}  // namespace twinkle_pack
