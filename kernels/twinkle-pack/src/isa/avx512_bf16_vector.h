// Vectors that AVX512_BF16 rounds to bfloat16. Included like the loops, after avx512_vector.h.

struct Avx512Bf16 : Avx512 {
    using Avx512::store;
    static void store(BFloat16* to, reg value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(value));
    }

    // Two vectors that lie side by side, in one store.
    static void store_pair(BFloat16* to, reg first, reg second) {
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(second, first));
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
