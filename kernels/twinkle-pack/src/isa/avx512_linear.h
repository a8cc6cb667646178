// The instructions of linear layers (loops/linear_few.h, loops/linear_many.h) and of images with
// channels last in AVX-512. Included like the loops, after avx512_vector.h.

// A pair of vectors, or of vectors of such sums, becomes one: neighbouring sums are added.
inline __m512 add_pairs(__m512 a, __m512 b) {
    return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
inline __m512 add_quads(__m512 a, __m512 b) {
    const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
    return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}

struct DotSums512 {
    using reg = __m512;
    static constexpr int64_t most_rows = 6;

    static reg zero() { return _mm512_setzero_ps(); }

    template <int count>
    static inline __attribute__((always_inline)) void add_sums(const reg* sums, float* to) {
        if constexpr (count >= 4) {
            const reg all = add_quads(add_pairs(sums[0], sums[1]), add_pairs(sums[2], sums[3]));
            const __m256 half =
                _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
            const __m128 four =
                _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
            _mm_storeu_ps(to, _mm_add_ps(four, _mm_loadu_ps(to)));
            if constexpr (count > 4) add_sums<count - 4>(sums + 4, to + 4);
        } else {
            for (int i = 0; i < count; ++i) to[i] += _mm512_reduce_add_ps(sums[i]);
        }
    }
};

// float32, and half precisions that are widened while they are loaded.
template <class Element>
struct Dot512 : DotSums512 {
    using T = Element;
    using in = __m512;
    static constexpr int64_t step = 16;

    static in load(const T* from) { return Avx512::load(from); }
    static in load_tail(const T* from, int64_t n) {
        return twinkle_pack::load_tail<Avx512>(from, n);
    }
    static reg dot(in a, in b, reg sum) { return _mm512_fmadd_ps(a, b, sum); }
};

// Transposes 16 x 16 groups of 4 bytes.
inline __attribute__((always_inline)) void transpose(__m512i (&v)[16]) {
    __m512i t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        t[2 * i] = _mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    constexpr int even = 0x88, odd = 0xdd;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        t[i] = _mm512_shuffle_i32x4(v[i], v[4 + i], even);
        t[4 + i] = _mm512_shuffle_i32x4(v[i], v[4 + i], odd);
        t[8 + i] = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], even);
        t[12 + i] = _mm512_shuffle_i32x4(v[8 + i], v[12 + i], odd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], even);
        v[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], odd);
        v[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], even);
        v[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], odd);
    }
}

struct GroupSums512 {
    using reg = __m512;
    static constexpr int64_t lanes = 16;
    static constexpr int tile_rows = 12;

    static reg zero() { return _mm512_setzero_ps(); }
    static __m512i load(const int32_t* from) { return _mm512_load_si512(from); }
    static __m512i broadcast(int32_t value) { return _mm512_set1_epi32(value); }
    static void store(float* to, reg value) { _mm512_store_ps(to, value); }
    static reg plus(reg value, const float* from) {
        return _mm512_add_ps(value, _mm512_load_ps(from));
    }
    static void add_to(float* sums, reg value) {
        _mm512_storeu_ps(sums, _mm512_add_ps(_mm512_loadu_ps(sums), value));
    }
};

static_assert(panel_columns == 2 * GroupSums512::lanes);

// A panel of groups that `Groups::load(const T*)` and `load_tail` make of 16 groups' elements.
template <class Groups>
void transpose_panel(int32_t* panel, const typename Groups::T* weight, int64_t stride,
                     int64_t columns, int64_t depth) {
    constexpr int64_t step = 16 * Groups::per_group;
    for (int64_t half = 0; half < panel_columns; half += 16)
        for (int64_t k = 0; k < depth; k += step) {
            __m512i block[16];
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i) {
                const auto* from = weight + (half + i) * stride + k;
                if (half + i >= columns)
                    block[i] = _mm512_setzero_si512();
                else if (depth - k >= step)
                    block[i] = Groups::groups(from);
                else
                    block[i] = Groups::groups(from, depth - k);
            }
            transpose(block);
            int32_t* const to = panel + k / Groups::per_group * panel_columns + half;
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * panel_columns, block[i]);
        }
}

template <class Element>
struct Outer512 : GroupSums512 {
    using T = Element;
    using Dot = Dot512<float>;
    static constexpr int64_t per_group = 1;

    static reg fma(__m512i a, __m512i b, reg sum) {
        return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
    }
    static __m512i groups(const T* from) { return _mm512_castps_si512(Avx512::load(from)); }
    static __m512i groups(const T* from, int64_t n) {
        return _mm512_castps_si512(load_tail<Avx512>(from, n));
    }
    static void pack_columns(int32_t* panel, const T* weight, int64_t stride, int64_t columns,
                             int64_t depth) {
        transpose_panel<Outer512>(panel, weight, stride, columns, depth);
    }
    static void pack_pixels(int32_t* panel, const T* x, const int64_t* offsets, int64_t depth,
                            const Source* sources, int64_t count) {
        for (int64_t s = 0; s < count; ++s) {
            const __mmask16 mask = Avx512::first(sources[s].count);
            const T* const from = x + sources[s].offset;
            int32_t* const to = panel + sources[s].lane;
            const auto all = [&](auto put) {
                for (int64_t k = 0; k < depth; ++k)
                    put(to + k * panel_columns, Avx512::load_where(from + offsets[k], mask));
            };
            // What is beyond the source's own lanes is overwritten by the next one's.
            if (sources[s].lane <= 16)
                all([](int32_t* at, reg value) { _mm512_storeu_ps(at, value); });
            else
                all([&](int32_t* at, reg value) { _mm512_mask_storeu_ps(at, mask, value); });
        }
    }
    static void pack_row(int32_t* to, const T* row, int64_t depth) {
        int64_t k = 0;
        for (; k + 16 <= depth; k += 16) _mm512_storeu_si512(to + k, groups(row + k));
        if (k < depth) _mm512_storeu_si512(to + k, groups(row + k, depth - k));
    }
};

// What multiplies where channels of images lie last (loops/conv_last_weights.h).
struct LastProducts512 {
    using T = float;
    using factor = __m512;
    static constexpr int64_t per_group = 1;

    static factor broadcast(const T* from) { return _mm512_set1_ps(*from); }
    static factor load(const float* from) { return _mm512_load_ps(from); }
    static __m512 fma(factor a, factor b, __m512 sum) { return _mm512_fmadd_ps(a, b, sum); }

    template <bool by_channel>
    static void transpose_to(const T* from, int64_t stride, int64_t rows, int64_t count, float* to,
                             const int64_t* places) {
        __m512i all[16];
        const __mmask16 mask = Avx512::first(count);
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r)
            all[r] = r < rows ? _mm512_castps_si512(Avx512::load_where(from + r * stride, mask))
                              : _mm512_setzero_si512();
        transpose(all);
#pragma GCC unroll 16
        for (int d = 0; d < 16; ++d)
            if (d < count) _mm512_store_si512(to + places[d] * last_lanes, all[d]);
    }
};
