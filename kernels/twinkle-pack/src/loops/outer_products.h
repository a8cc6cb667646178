// Outer products, of which products of matrices of many rows are made: each element of a row meets
// a whole row of a panel, two vectors wide, that lies in the cache.
//
// G: `reg` of float32 sums, `lanes` of it, `tile_rows` that fit the registers, `T`, `per_group`:
//     elements of T in a group of 4 bytes of the panel (2 where the instruction adds two products);
//     static zero(), load(const int32_t*), broadcast(int32_t), fma(x group, panel groups, sums),
//     and pack_row(int32_t* to, const T* row, depth): depth in elements, rounded up to whole groups
//     with zeros.

// A panel that is computed next, as rows of memory: each tile asks for some of its lines.
struct NextPanel {
    const char* data;
    int64_t stride, rows, bytes;  // stride and bytes of a row

    // Of each row all but the first groups.
    NextPanel after(int64_t groups) const {
        return {data + groups * 4, stride, rows, bytes - groups * 4};
    }
    // The rows of `some` of so many parts, from the part `first` on.
    NextPanel part(int64_t first, int64_t parts, int64_t some = 1) const {
        const int64_t begin = rows * first / parts, end = rows * (first + some) / parts;
        return {data + begin * stride, stride, end - begin, bytes};
    }
    // While sixteen groups from `group` on are computed: of each row the lines that belong to them.
    void ask_for_sixteen(int64_t group) const {
        for (int64_t r = 0; r < rows; ++r)
            if (group * 4 < bytes) __builtin_prefetch(data + r * stride + group * 4, 0, 3);
    }
    void ask_for(int64_t) const {}
};

// Sums of `rows` x `vectors` * lanes; rows of x are x_stride groups apart. Next: as NextPanel.
template <class G, int rows, int vectors, class Next>
inline __attribute__((always_inline)) void outer_products(const int32_t* x, int64_t x_stride,
                                                          const int32_t* panel, int64_t groups,
                                                          Next next,
                                                          typename G::reg (&sum)[rows][vectors]) {
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[r][v] = G::zero();
    for (int64_t begin = 0; begin < groups; begin += 16) {
        const int64_t end = begin + 16 < groups ? begin + 16 : groups;
        next.ask_for_sixteen(begin);
        for (int64_t k = begin; k < end; ++k) {
            next.ask_for(k);
            decltype(G::load(panel)) columns[vectors];
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) columns[v] = G::load(panel + (2 * k + v) * G::lanes);
#pragma GCC unroll 16
            for (int r = 0; r < rows; ++r) {
                const auto value = G::broadcast(x[r * x_stride + k]);
#pragma GCC unroll 2
                for (int v = 0; v < vectors; ++v) sum[r][v] = G::fma(value, columns[v], sum[r][v]);
            }
        }
    }
}
