// AVX-512 with VNNI, which sums four products of bytes in one instruction: unsigned ones of the
// weight, signed ones of x. A weight is moved into the unsigned bytes, and what that adds is taken
// off again, as the sum of x's group is known.
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
// clang-format on

template <Bits kind>
struct BitsWeights {
    static constexpr int64_t bytes = kind == Bits::int8 ? bits_group : bits_group / 2;
    static constexpr int32_t offset = kind == Bits::int8 ? 128 : 8;

    static __m512i load(const uint8_t* from) {
        if constexpr (kind == Bits::int8) {
            return _mm512_xor_si512(_mm512_loadu_si512(from), _mm512_set1_epi8(-128));
        } else {
            const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
            const __m512i spread =
                _mm512_inserti64x4(_mm512_castsi256_si512(both), _mm256_srli_epi16(both, 4), 1);
            return _mm512_and_si512(spread, _mm512_set1_epi8(15));
        }
    }
};

template <Bits kind>
struct DotBits : BitsWeights<kind> {
    using reg = __m512;
    static constexpr int rows = 4;

    static reg zero() { return _mm512_setzero_ps(); }
    static reg add(reg sum, __m512i weight, const int8_t* x, ActivationGroup group, float scale) {
        const __m512i begin = _mm512_maskz_set1_epi32(1, -BitsWeights<kind>::offset * group.sum);
        const __m512i products = _mm512_dpbusd_epi32(begin, weight, _mm512_loadu_si512(x));
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(products), _mm512_set1_ps(group.scale * scale),
                               sum);
    }
    static float sum(reg value) { return _mm512_reduce_add_ps(value); }
};

// A panel of up to 16 groups of 32 columns, four bytes of a column beside those of the next, and
// its scales.
struct Panel {
    int32_t* values;  // [groups * 16, 32]
    float* scales;    // [groups, 32]
    int64_t groups;
};

template <Bits kind>
void pack_panel(const BitsPiece& piece, int64_t column, int64_t count, int64_t from,
                const Panel& panel) {
    constexpr int64_t bytes = BitsWeights<kind>::bytes;
    const int64_t stride = piece.groups * bytes;
    const uint8_t* const weight =
        static_cast<const uint8_t*>(piece.weight) + column * stride + from * bytes;
    const float* const scales = piece.scales + column * piece.groups + from;
    for (int64_t half = 0; half < bits_columns; half += 16)
        for (int64_t g = 0; g < panel.groups; ++g) {
            __m512i block[16];
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i)
                block[i] = half + i < count
                               ? BitsWeights<kind>::load(weight + (half + i) * stride + g * bytes)
                               : _mm512_setzero_si512();
            transpose(block);
            int32_t* const to = panel.values + g * 16 * bits_columns + half;
#pragma GCC unroll 16
            for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * bits_columns, block[i]);
        }
    for (int64_t g = 0; g < panel.groups; ++g)
        for (int64_t c = 0; c < bits_columns; ++c)
            panel.scales[g * bits_columns + c] = c < count ? scales[c * piece.groups + g] : 0;
}

// Adds a panel's products with some rows to their sums.
template <Bits kind, int rows>
inline __attribute__((always_inline)) void outer_bits(const BitsPiece& piece, int64_t row,
                                                      int64_t from, const Panel& panel,
                                                      float* sums) {
    __m512 sum[rows][2];
    const int8_t* x[rows];
    const ActivationGroup* groups[rows];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        x[r] = piece.x + (row + r) * piece.x_stride + from * bits_group;
        groups[r] = piece.x_groups + (row + r) * piece.groups + from;
        sum[r][0] = _mm512_load_ps(sums + r * bits_columns);
        sum[r][1] = _mm512_load_ps(sums + r * bits_columns + 16);
    }
    const int32_t* values = panel.values;
    for (int64_t g = 0; g < panel.groups; ++g) {
        __m512i products[rows][2];
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
            products[r][0] = products[r][1] =
                _mm512_set1_epi32(-BitsWeights<kind>::offset * groups[r][g].sum);
        for (int64_t k = 0; k < bits_group; k += 4, values += bits_columns) {
            const __m512i low = _mm512_load_si512(values), high = _mm512_load_si512(values + 16);
#pragma GCC unroll 8
            for (int r = 0; r < rows; ++r) {
                int32_t four;
                __builtin_memcpy(&four, x[r] + g * bits_group + k, sizeof four);
                const __m512i all = _mm512_set1_epi32(four);
                products[r][0] = _mm512_dpbusd_epi32(products[r][0], low, all);
                products[r][1] = _mm512_dpbusd_epi32(products[r][1], high, all);
            }
        }
        const __m512 low = _mm512_load_ps(panel.scales + g * bits_columns);
        const __m512 high = _mm512_load_ps(panel.scales + g * bits_columns + 16);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            const __m512 scale = _mm512_set1_ps(groups[r][g].scale);
            sum[r][0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[r][0]),
                                        _mm512_mul_ps(low, scale), sum[r][0]);
            sum[r][1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(products[r][1]),
                                        _mm512_mul_ps(high, scale), sum[r][1]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
        _mm512_store_ps(sums + r * bits_columns, sum[r][0]);
        _mm512_store_ps(sums + r * bits_columns + 16, sum[r][1]);
    }
}

template <Bits kind, int rows>
void outer_bits_of(int64_t wanted, const BitsPiece& piece, int64_t row, int64_t from,
                   const Panel& panel, float* sums) {
    if (wanted >= rows) return outer_bits<kind, rows>(piece, row, from, panel, sums);
    if constexpr (rows > 1) outer_bits_of<kind, rows - 1>(wanted, piece, row, from, panel, sums);
}

constexpr int64_t outer_rows_at_once = 6;

template <class T, Bits kind>
void bits_many(const BitsPiece& piece) {
    Panel panel{static_cast<int32_t*>(piece.scratch), nullptr, 0};
    panel.scales = reinterpret_cast<float*>(panel.values + bits_columns * bits_chunk * 16);
    float* const sums = panel.scales + bits_columns * bits_chunk;
    for (int64_t first = 0; first < piece.row_count; first += bits_rows) {
        const int64_t below = piece.row_count - first, rows = below < bits_rows ? below : bits_rows;
        for (int64_t at = piece.begin; at < piece.end; at += bits_columns) {
            const int64_t left = piece.end - at, count = left < bits_columns ? left : bits_columns;
            for (int64_t i = 0; i < rows * bits_columns; ++i) sums[i] = 0;
            for (int64_t from = 0; from < piece.groups; from += bits_chunk) {
                panel.groups = piece.groups - from < bits_chunk ? piece.groups - from : bits_chunk;
                pack_panel<kind>(piece, at, count, from, panel);
                for (int64_t r = 0; r < rows; r += outer_rows_at_once)
                    outer_bits_of<kind, outer_rows_at_once>(rows - r, piece, first + r, from, panel,
                                                            sums + r * bits_columns);
            }
            finish_bits<Avx512, T>(piece, sums, first, rows, at, count);
        }
    }
}

// Up to so many rows a dot product costs less than a panel.
constexpr int64_t most_dot_rows = 8;

template <class T, Bits kind>
void bits_linear(const BitsPiece& piece) {
    piece.row_count <= most_dot_rows ? bits_few<Avx512, T, DotBits<kind>>(piece)
                                     : bits_many<T, kind>(piece);
}

template <class T>
void add(RowFunctions& to) {
    to.round_row[index_of<T>] = round_row<Avx512, T>;
    to.bits_linear[static_cast<int>(Bits::int8)][index_of<T>] = bits_linear<T, Bits::int8>;
    to.bits_linear[static_cast<int>(Bits::int4)][index_of<T>] = bits_linear<T, Bits::int4>;
}

}  // namespace

void add_avx512_vnni(RowFunctions& functions) {
    functions.isa = "avx512vnni";
    add<float>(functions);
    add<BFloat16>(functions);
    add<Float16>(functions);
}

}  // namespace twinkle_pack
