// V of loops/common.h: 16 floats of AVX-512. Included like the loops, after them.

// The bits of a float32 rounded to the nearest bfloat16 (ties to even), in the upper half. A NaN
// stays one: it comes from a bfloat16 or an invalid operation, so that its lower half is zero and
// cannot carry.
inline __m512i bfloat16_bits(__m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    return _mm512_add_epi32(bits, bias);
}

struct Avx512 {
    using scalar = float;
    using reg = __m512;
    static constexpr int64_t width = 16;
    static constexpr bool precise = false;

    static reg set1(float value) { return _mm512_set1_ps(value); }
    static reg add(reg a, reg b) { return _mm512_add_ps(a, b); }
    static reg mul(reg a, reg b) { return _mm512_mul_ps(a, b); }
    static reg div(reg a, reg b) { return _mm512_div_ps(a, b); }
    static reg fma(reg a, reg b, reg c) { return _mm512_fmadd_ps(a, b, c); }
    static reg sub(reg a, reg b) { return _mm512_sub_ps(a, b); }
    static reg fmsub(reg a, reg b, reg c) { return _mm512_fmsub_ps(a, b, c); }
    using Scale = SplitScale<Avx512>;
    static reg product(reg x, Scale scale, reg weight) {
        return fused_product<Avx512>(x, scale, weight);
    }
    static reg normalized(reg x, Scale minus_mean, Scale scale, reg weight, reg bias) {
        return fused_normalized<Avx512>(x, minus_mean, scale, weight, bias);
    }

    static double sum(reg a) {
        const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(a));
        const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(a, 1));
        return _mm512_reduce_add_pd(_mm512_add_pd(low, high));
    }

    static reg load(const float* from) { return _mm512_loadu_ps(from); }
    static reg load(const BFloat16* from) {
        const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    }
    static reg load(const Float16* from) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }

    static void store(float* to, reg value) { _mm512_storeu_ps(to, value); }
    static void store(BFloat16* to, reg value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                            _mm512_cvtepi32_epi16(_mm512_srli_epi32(bfloat16_bits(value), 16)));
    }
    static void store(Float16* to, reg value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                            _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
    }

    // 0 < n <= 16 elements; the rest is zero, and its memory is not touched.
    static __mmask16 first(int64_t n) { return static_cast<__mmask16>((1U << n) - 1); }
    static reg load_where(const float* from, __mmask16 mask) {
        return _mm512_maskz_loadu_ps(mask, from);
    }
    static reg load_where(const BFloat16* from, __mmask16 mask) {
        const __m256i bits = _mm256_maskz_loadu_epi16(mask, from);
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
    }
    static reg load_where(const Float16* from, __mmask16 mask) {
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, from));
    }
    template <class T>
    static reg load_some(const T* from, int64_t n) {
        return load_where(from, first(n));
    }
    static void store_some(float* to, reg value, int64_t n) {
        _mm512_mask_storeu_ps(to, first(n), value);
    }

    // 0 < n <= 16 elements of which each second one is read.
    static __mmask32 pairs(int64_t n) {
        return static_cast<__mmask32>((uint64_t{1} << (2 * n - 1)) - 1);
    }
    static void copy_even(const float* from, int64_t n, float* to) {
        const __m512i even =
            _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        const __mmask32 read = pairs(n);
        const reg low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(read), from);
        const reg high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(read >> 16), from + 16);
        const reg both = _mm512_permutex2var_ps(low, even, high);
        n == 16 ? _mm512_storeu_ps(to, both) : _mm512_mask_storeu_ps(to, first(n), both);
    }
    template <class Half>
    static void copy_even(const Half* from, int64_t n, Half* to) {
        const __m512i both = _mm512_maskz_loadu_epi16(pairs(n), from);
        _mm256_mask_storeu_epi16(to, first(n), _mm512_cvtepi32_epi16(both));
    }

    static void accumulate(double* sums, reg value) {
        const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(value));
        const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(value, 1));
        _mm512_storeu_pd(sums, _mm512_add_pd(_mm512_loadu_pd(sums), low));
        _mm512_storeu_pd(sums + 8, _mm512_add_pd(_mm512_loadu_pd(sums + 8), high));
    }

    // A guess of 14 bits for 1 / b, doubled by one Newton step: cheaper than a division.
    static reg quotient(reg a, reg b) {
        const reg guess = _mm512_rcp14_ps(b);
        return mul(a, mul(guess, _mm512_fnmadd_ps(b, guess, set1(2))));
    }
    // max and min return their second operand if one is NaN.
    static reg clamp(reg a, float least, float most) {
        return _mm512_min_ps(set1(most), _mm512_max_ps(set1(least), a));
    }
    static reg relu(reg a) { return _mm512_max_ps(set1(0), a); }
    static reg max(reg a, reg b) { return _mm512_max_ps(a, b); }
    static reg larger(reg a, reg b) {
        const __mmask16 is_larger =
            _mm512_cmp_ps_mask(b, a, _CMP_GT_OQ) | _mm512_cmp_ps_mask(b, b, _CMP_UNORD_Q);
        return _mm512_mask_blend_ps(is_larger, a, b);
    }
    // Minus infinity where one of the `n` bytes is zero.
    static reg where(const uint8_t* kept, int64_t n, reg value) {
        const __m128i bytes = _mm_maskz_loadu_epi8(first(n), kept);
        return _mm512_mask_blend_ps(_mm_test_epi8_mask(bytes, bytes), set1(-__builtin_inff()),
                                    value);
    }
    static reg if_negative(reg x, reg a, reg b) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, set1(0), _CMP_LT_OQ), b, a);
    }
    static reg if_positive(reg x, reg a) {
        return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set1(0), _CMP_NLE_UQ), a);
    }
    static reg swap_pairs(reg a) { return _mm512_permute_ps(a, 0xb1); }
    static reg pair_signs() { return _mm512_castsi512_ps(_mm512_set1_epi64(0x3f800000bf800000)); }

    static void fence() { _mm_sfence(); }
    static void stream(float* to, reg value) { _mm512_stream_ps(to, value); }

    template <class T>
    static reg rounded(reg value) {
        if constexpr (__is_same(T, BFloat16))
            return _mm512_castsi512_ps(_mm512_and_si512(
                bfloat16_bits(value), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
        else if constexpr (__is_same(T, Float16))
            return _mm512_cvtph_ps(_mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
        else
            return value;
    }

    static reg exp(reg x) {
        x = clamp(x, -104, 104);
        const reg k = _mm512_roundscale_ps(_mm512_mul_ps(x, set1(1.44269504f)),
                                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        const reg r = fma(k, set1(2.12194440e-4f), fma(k, set1(-0.693359375f), x));
        return _mm512_scalef_ps(exp_of_remainder<Avx512>(r), k);
    }
};
