// Vectors of AVX2, FMA and F16C. Included like the loops.

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
