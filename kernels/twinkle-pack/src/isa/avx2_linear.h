// The instructions of linear layers (loops/linear_few.h, loops/linear_many.h) and of images with
// channels last in AVX2. Included like the loops, after avx2_vector.h.

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
