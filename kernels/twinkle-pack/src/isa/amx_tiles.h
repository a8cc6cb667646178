// AMX: eight tiles of 16 rows of 64 bytes, and products of two that are added to a third. Included
// like the loops.
//
// A product has 16 x 16 sums of 4 bytes. Its first factor has rows of 64 bytes of a matrix as they
// are; its second one groups of 4 bytes, of which row g has the g-th of each of 16 rows of a
// matrix.

constexpr int64_t tile_rows = 16, tile_bytes = 1024, tile_row_bytes = 64, tile_groups = 16;

// While it exists, the thread has these tiles: 0 to 3 are sums, 4 and 5 first factors, 6 and 7
// second factors. Sums and first factors may have fewer rows; a row of a first factor may have
// fewer groups, of which a second factor has as many rows then.
class TilesInUse {
public:
    explicit TilesInUse(int64_t rows = tile_rows, int64_t groups = tile_groups) {
        struct alignas(64) {
            uint8_t palette, start_row, reserved[14];
            uint16_t row_bytes[16];
            uint8_t rows[16];
        } shape{};
        shape.palette = 1;
        for (int i = 0; i < 8; ++i) {
            const bool is_first_factor = i == 4 || i == 5;
            shape.row_bytes[i] =
                static_cast<uint16_t>(is_first_factor ? groups * 4 : tile_row_bytes);
            shape.rows[i] = static_cast<uint8_t>(i < 6 ? rows : groups);
        }
        __asm__ volatile("ldtilecfg %0" ::"m"(shape));
    }
    ~TilesInUse() { __asm__ volatile("tilerelease"); }
    TilesInUse(const TilesInUse&) = delete;
    TilesInUse& operator=(const TilesInUse&) = delete;
};

template <int to>
inline void load_tile(const void* from, int64_t row_stride) {
    __asm__ volatile("tileloadd (%[from],%[stride],1), %%tmm%c[to]" ::[from] "r"(from),
                     [stride] "r"(row_stride), [to] "i"(to)
                     : "memory");
}
template <int from>
inline void store_tile(void* to, int64_t row_stride) {
    __asm__ volatile("tilestored %%tmm%c[from], (%[to],%[stride],1)" ::[to] "r"(to),
                     [stride] "r"(row_stride), [from] "i"(from)
                     : "memory");
}
template <int tile>
inline void zero_tile() {
    __asm__ volatile("tilezero %%tmm%c[tile]" ::[tile] "i"(tile));
}
// Pairs of bfloat16; sums are float32.
template <int sum, int first, int second>
inline void add_pairs_of_tiles() {
    __asm__ volatile("tdpbf16ps %%tmm%c[b], %%tmm%c[a], %%tmm%c[c]" ::[a] "i"(first),
                     [b] "i"(second), [c] "i"(sum));
}
// Bytes with a sign; sums are integers.
template <int sum, int first, int second>
inline void add_bytes_of_tiles() {
    __asm__ volatile("tdpbssd %%tmm%c[b], %%tmm%c[a], %%tmm%c[c]" ::[a] "i"(first), [b] "i"(second),
                     [c] "i"(sum));
}
