// The instructions of linear layers with fewer bits (loops/bits_blocks.h) in AVX2. Included like
// the loops, after avx2_vector.h.

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
                                                                ints (&sum)[rows][blocks],
                                                                int64_t ahead) {
#pragma GCC unroll 8
        for (int b = 0; b < blocks; ++b)
            if constexpr (kind == Bits::int8)
                add_bytes<rows, blocks>(w[b], x, sum, b, ahead);
            else
                add_halves<rows, blocks>(w[b], x, sum, b, ahead);
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
                                                                ints (&sum)[rows][blocks], int b,
                                                                int64_t ahead) {
        for (int64_t k = 0; k < bits_group_bytes(kind) / 64; ++k) {
            if (ahead) __builtin_prefetch(w + 64 * k + ahead, 0, 2);
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
                                                                 ints (&sum)[rows][blocks], int b,
                                                                 int64_t ahead) {
        static_assert(bits_group_bytes(kind) / 64 <= 8);
        const __m256i mask = _mm256_set1_epi8(15);
#pragma GCC unroll 2
        for (int upper = 0; upper < 2; ++upper) {
            __m256i sums[rows][2];
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
            for (int64_t k = 0; k < bits_group_bytes(kind) / 64; ++k) {
                if (ahead && upper == 0) __builtin_prefetch(w + 64 * k + ahead, 0, 2);
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
