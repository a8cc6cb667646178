// Linear layers with fewer bits by AMX. A group of 64 along the depth is one product of tiles: of
// 16 rows of x as they lie, and of 16 columns of the weight, with a sign and 8 bits each.

constexpr int64_t bits_tile_rows = 16;
// Sums that a tile has stored can be loaded some time later without a wait: so many groups later.
constexpr int64_t bits_lag = 8;

// A group of a block of the weight; of int4, see operators/families.h.
template <Bits kind>
inline void unpack_group(const uint8_t* from, int8_t* to) {
    for (int64_t k = 0; k < bits_group_bytes(kind); k += 64) {
        const __m512i all = _mm512_loadu_si512(from + k);
        if constexpr (kind == Bits::int8) {
            _mm512_store_si512(to + k, _mm512_xor_si512(all, _mm512_set1_epi8(-128)));
        } else {
            const __m512i mask = _mm512_set1_epi8(15), offset = _mm512_set1_epi8(8);
            const __m512i high = _mm512_and_si512(_mm512_srli_epi16(all, 4), mask);
            _mm512_store_si512(to + k, _mm512_sub_epi8(_mm512_and_si512(all, mask), offset));
            _mm512_store_si512(to + tile_bytes / 2 + k, _mm512_sub_epi8(high, offset));
        }
    }
}

// Tiles 0 to 3 are sums of successive groups, 4 and 5 of x, 6 and 7 of the weight.
template <int phase>
inline void multiply_group(const int8_t* x, int64_t x_stride, const int8_t* weight) {
    constexpr int x_tile_of = 4 + phase % 2, weight_tile_of = 6 + phase % 2;
    zero_tile<phase>();
    load_tile<x_tile_of>(x, x_stride);
    load_tile<weight_tile_of>(weight, tile_row_bytes);
    add_bytes_of_tiles<phase, x_tile_of, weight_tile_of>();
}

// 16 rows of x and a block. Rows beyond the last are read, and their sums mean nothing.
struct BitsTile {
    const int8_t* x;
    int64_t x_stride, groups;
    const float* x_scales;  // [groups, 16 rows]
    const int8_t* weight;   // unpacked
    const float* scales;

    // Products are stored, and added, some groups after they were begun: neither waits.
    void sum(float* sums) const {
        alignas(64) int32_t products[bits_lag][bits_tile_rows * bits_block];
        __m512 sum[bits_tile_rows];
#pragma GCC unroll 16
        for (int r = 0; r < bits_tile_rows; ++r) sum[r] = _mm512_setzero_ps();
        for (int64_t first = 0; first < groups + bits_lag; first += 4)
            for_each_tile<4>([&](auto phase) {
                const int64_t g = first + phase;
                if (g < groups) {
                    multiply_group<phase>(x + g * bits_group, x_stride, weight + g * tile_bytes);
                }
                if (g >= 2 && g - 2 < groups)
                    store_tile<(phase + 2) % 4>(products[(g - 2) % bits_lag], tile_row_bytes);
                if (g >= bits_lag && g - bits_lag < groups)
                    add(g - bits_lag, products[g % bits_lag], sum);
            });
#pragma GCC unroll 16
        for (int r = 0; r < bits_tile_rows; ++r) _mm512_store_ps(sums + r * bits_block, sum[r]);
    }

    inline __attribute__((always_inline)) void add(int64_t g, const int32_t* products,
                                                   __m512 (&sum)[bits_tile_rows]) const {
        const __m512 scale = _mm512_loadu_ps(scales + g * bits_block);
        const float* const of_rows = x_scales + g * bits_tile_rows;
#pragma GCC unroll 16
        for (int r = 0; r < bits_tile_rows; ++r) {
            const __m512 both = _mm512_mul_ps(scale, _mm512_set1_ps(of_rows[r]));
            const __m512 all = _mm512_cvtepi32_ps(_mm512_load_si512(products + r * bits_block));
            sum[r] = _mm512_fmadd_ps(all, both, sum[r]);
        }
    }
};

// [row tiles, groups, 16]; of rows beyond the last zero.
inline void order_scales(const BitsPiece& piece, float* to) {
    for (int64_t row = 0; row < piece.row_count; row += bits_tile_rows)
        for (int64_t g = 0; g < piece.groups; ++g)
            for (int64_t r = row; r < row + bits_tile_rows; ++r)
                *to++ = r < piece.row_count ? piece.x_groups[r * piece.groups + g].scale : 0.0f;
}

// How much of x is read again for each block, from the second cache.
constexpr int64_t cached_bits_bytes = 512 * 1024;

template <Bits kind, class V, class T>
class BitsTiles {
public:
    explicit BitsTiles(const BitsPiece& piece)
        : piece_(piece),
          weight_(static_cast<int8_t*>(piece.scratch)),
          x_scales_(
              reinterpret_cast<float*>(weight_ + bits_tile_blocks * piece.groups * tile_bytes)) {}

    void run() {
        const TilesInUse tiles;
        order_scales(piece_, x_scales_);
        const int64_t cached =
            cached_bits_bytes / piece_.x_stride / bits_tile_rows * bits_tile_rows;
        const int64_t at_once = cached < bits_tile_rows ? bits_tile_rows : cached;
        for (int64_t row = 0; row < piece_.row_count; row += at_once) {
            const int64_t left = piece_.row_count - row;
            for (int64_t block = piece_.begin; block < piece_.end; block += bits_tile_blocks)
                multiply(row, row + (left < at_once ? left : at_once), block);
        }
    }

private:
    // Several blocks, so that the memory has several places to read from.
    void multiply(int64_t begin, int64_t end, int64_t first) {
        const int64_t left = piece_.end - first;
        const int64_t count = left < bits_tile_blocks ? left : bits_tile_blocks;
        const float* scales[bits_tile_blocks];
        const uint8_t* values[bits_tile_blocks];
        for (int64_t b = 0; b < count; ++b) {
            const BitsPiece::Weight from = bits_block_at<kind>(piece_, first + b);
            scales[b] = from.scales;
            values[b] = from.values;
        }
        for (int64_t g = 0; g < piece_.groups; ++g)
            for (int64_t b = 0; b < count; ++b)
                unpack_group<kind>(values[b] + g * bits_group_bytes(kind),
                                   unpacked(b) + g * tile_bytes);
        for (int64_t row = begin; row < end; row += bits_tile_rows)
            for (int64_t b = 0; b < count; ++b) {
                alignas(64) float sums[bits_tile_rows * bits_block];
                const BitsTile tile{
                    piece_.x + row * piece_.x_stride, piece_.x_stride, piece_.groups,
                    x_scales_ + row * piece_.groups,  unpacked(b),     scales[b]};
                tile.sum(sums);
                finish(row, end, first + b, sums);
            }
    }
    int8_t* unpacked(int64_t block) const { return weight_ + block * piece_.groups * tile_bytes; }

    void finish(int64_t row, int64_t end, int64_t block, const float* sums) {
        LinearPiece last{};
        last.factors[0].bias = piece_.bias;
        last.finish = Finish::none;
        last.result_stride = piece_.result_stride;
        const int64_t at = block * bits_block, left = piece_.columns - at;
        T* const result = static_cast<T*>(piece_.result) + at;
        const int64_t rows = end - row < bits_tile_rows ? end - row : bits_tile_rows;
        finish_sums<V>(last, at, {sums, nullptr, rows, bits_block},
                       result + row * piece_.result_stride, left < bits_block ? left : bits_block);
    }

    const BitsPiece& piece_;
    int8_t* weight_;
    float* x_scales_;
};

template <Bits kind, class V, class T>
void bits_linear_tiles(const BitsPiece& piece) {
    BitsTiles<kind, V, T>(piece).run();
}

template <class V, class T>
void add_bits_tiles(RowFunctions& to) {
    constexpr int int8 = static_cast<int>(Bits::int8), int4 = static_cast<int>(Bits::int4);
    to.bits_linear_tiles[int8][index_of<T>] = bits_linear_tiles<Bits::int8, V, T>;
    to.bits_linear_tiles[int4][index_of<T>] = bits_linear_tiles<Bits::int4, V, T>;
}
