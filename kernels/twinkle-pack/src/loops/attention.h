// Scaled dot product attention: softmax(query key^T * scale + mask) value, of some rows of one
// head, block by block of the keys. Scores and what they become lie in the cache; sums of values
// are scaled down when a block has a larger score than those before it (Dao et al., 2022,
// arXiv:2205.14135).
//
// G as for outer products; where a group has several elements, weights are rounded to G::T, as
// LibTorch does.

// The stride of rows of scores, and of wide rows: not a multiple of a page.
constexpr int64_t score_stride = attention_columns + 16;
constexpr int64_t wide_stride = attention_width + 16;
constexpr int64_t attention_chain = 128;  // groups that are added up in registers

struct AttentionScratch {
    alignas(64) int32_t query[attention_rows * wide_stride];
    alignas(64) float scores[attention_rows * score_stride];
    alignas(64) float sums[attention_rows * wide_stride];
    alignas(64) int32_t panel[attention_columns * 2 * most_lanes];
    float largest[attention_rows], total[attention_rows];
};
static_assert(sizeof(AttentionScratch) <= attention_scratch);

// Adds rows of x times a panel to sums, or stores the products.
template <class G, int rows>
__attribute__((noinline)) void product_tile(const int32_t* x, int64_t x_stride,
                                            const int32_t* panel, int64_t groups, bool adds,
                                            float* to, int64_t stride) {
    for (int64_t from = 0; from < groups; from += attention_chain) {
        const int64_t left = groups - from, some = left < attention_chain ? left : attention_chain;
        typename G::reg sum[rows][2];
        outer_products<G>(x + from, x_stride, panel + from * 2 * G::lanes, some, NextPanel{}, sum);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
            for (int v = 0; v < 2; ++v) {
                float* const at = to + r * stride + v * G::lanes;
                G::store(at, adds || from > 0 ? G::plus(sum[r][v], at) : sum[r][v]);
            }
    }
}

template <class G, int rows>
void product_tile_of(int64_t wanted, const int32_t* x, int64_t x_stride, const int32_t* panel,
                     int64_t groups, bool adds, float* to, int64_t stride) {
    if (wanted == rows) return product_tile<G, rows>(x, x_stride, panel, groups, adds, to, stride);
    if constexpr (rows > 1)
        product_tile_of<G, rows - 1>(wanted, x, x_stride, panel, groups, adds, to, stride);
}

template <class G>
void product_rows(int64_t rows, const int32_t* x, int64_t x_stride, const int32_t* panel,
                  int64_t groups, bool adds, float* to, int64_t stride) {
    const int64_t tiles = (rows + G::tile_rows - 1) / G::tile_rows;
    for (int64_t t = 0, row = 0; t < tiles; ++t) {
        const int64_t count = (rows - row + tiles - t - 1) / (tiles - t);
        product_tile_of<G, G::tile_rows>(count, x + row * x_stride, x_stride, panel, groups, adds,
                                         to + row * stride, stride);
        row += count;
    }
}

// Keys [from, from + count).
struct KeyBlock {
    int64_t from, count;
};

// A power of two that is part of the scale, for queries: scores overflow later then, and are the
// same bit for bit. Scores of float16 do not overflow, but its queries might become too small.
template <class T>
float factor_of_queries(float scale) {
    constexpr float least = 0x1p-16f;
    float factor = 1;
    while (!__is_same(T, Float16) && factor > least && __builtin_fabsf(scale) < factor) factor /= 2;
    return factor;
}

template <class V, class G>
class Attention {
    using T = typename G::T;
    using reg = typename V::reg;

public:
    explicit Attention(const AttentionPiece& piece)
        : piece_(piece),
          shape_(*piece.shape),
          at_(*static_cast<AttentionScratch*>(piece.scratch)),
          rows_(piece.end - piece.begin),
          query_factor_(factor_of_queries<T>(shape_.scale)),
          scale_(shape_.scale / query_factor_) {}

    void run() {
        const T* const query = static_cast<const T*>(piece_.query);
        for (int64_t r = 0; r < rows_; ++r) {
            pack_query(at_.query + r * wide_stride, query + (piece_.begin + r) * shape_.query[2]);
            at_.largest[r] = -__builtin_inff();
            at_.total[r] = 0;
            for (int64_t c = 0; c < shape_.width; c += 2 * G::lanes)
                for (int64_t lane = 0; lane < 2 * G::lanes; lane += V::width)
                    V::store(at_.sums + r * wide_stride + c + lane, V::set1(0));
        }
        const bool is_short = shape_.is_causal && piece_.end < shape_.columns;
        const int64_t columns = is_short ? piece_.end : shape_.columns;
        for (int64_t from = 0; from < columns; from += attention_columns) {
            const int64_t left = columns - from;
            const KeyBlock block{from, left < attention_columns ? left : attention_columns};
            set_scores(block);
            for (int64_t r = 0; r < rows_; ++r) make_weights(block, r);
            add_values(block);
        }
        bool is_finite[attention_rows];
        for (int64_t r = 0; r < rows_; ++r) is_finite[r] = finish(r);
        if (!shape_.is_causal || rows_ == 1) return;
        for (int64_t r = 0; r < rows_; ++r)
            if (!is_finite[r]) run_alone(r);
    }

private:
    static constexpr bool is_rounded = G::per_group > 1;

    static int64_t groups_of(int64_t elements) {
        return (elements + G::per_group - 1) / G::per_group;
    }

    void pack_query(int32_t* to, const T* row) const {
        if (query_factor_ == 1) return G::pack_row(to, row, shape_.width);
        alignas(64) T scaled[attention_width];
        for (int64_t c = 0; c < shape_.width; c += V::width) {
            const int64_t left = shape_.width - c, n = left < V::width ? left : V::width;
            const reg values = V::mul(load_first<V>(row + c, n), V::set1(query_factor_));
            store_first<V>(scaled + c, values, n);
        }
        G::pack_row(to, scaled, shape_.width);
    }

    void set_scores(const KeyBlock& block) {
        constexpr int64_t panel = 2 * G::lanes;
        const int64_t stride = shape_.key[2];
        const T* const key = static_cast<const T*>(piece_.key) + block.from * stride;
        for (int64_t c = 0; c < block.count; c += panel) {
            const int64_t left = block.count - c;
            G::pack_columns(at_.panel, key + c * stride, stride, left < panel ? left : panel,
                            shape_.width);
            product_rows<G>(rows_, at_.query, wide_stride, at_.panel, groups_of(shape_.width),
                            false, at_.scores + c, score_stride);
        }
    }

    void add_values(const KeyBlock& block) {
        const int64_t stride = shape_.value[2];
        const T* const value = static_cast<const T*>(piece_.value) + block.from * stride;
        int64_t offsets[attention_columns];
        for (int64_t k = 0; k < block.count; ++k) offsets[k] = k * stride;
        const auto* const weights = reinterpret_cast<const int32_t*>(at_.scores);
        for (int64_t c = 0; c < shape_.width; c += 2 * G::lanes) {
            const int64_t left = shape_.width - c, beyond = left - G::lanes;
            const auto lanes = [](int64_t some) {
                return static_cast<int32_t>(some < G::lanes ? some : G::lanes);
            };
            const Source sources[] = {{0, lanes(left), c}, {G::lanes, lanes(beyond), c + G::lanes}};
            G::pack_pixels(at_.panel, value, offsets, block.count, sources, beyond > 0 ? 2 : 1);
            product_rows<G>(rows_, weights, score_stride, at_.panel, groups_of(block.count), true,
                            at_.sums + c, wide_stride);
        }
    }

    // How many keys of a block a row sees.
    int64_t seen_of(const KeyBlock& block, int64_t r) const {
        const int64_t seen = piece_.begin + r + 1 - block.from;
        if (!shape_.is_causal || seen >= block.count) return block.count;
        return seen > 0 ? seen : 0;
    }

    // Scores become weights; those of keys that the row does not see are zeros.
    void make_weights(const KeyBlock& block, int64_t r) {
        float* const scores = at_.scores + r * score_stride;
        const int64_t seen = seen_of(block, r);
        const int64_t whole = (seen + V::width - 1) / V::width * V::width;
        const bool is_scaled = scale_first(block, r, seen, scores);
        if (seen < whole) store_first<V>(scores + seen, V::set1(-__builtin_inff()), whole - seen);
        const float factor = is_scaled ? 1 : scale_;
        const float before = at_.largest[r], found = largest_of(scores, whole);
        const float largest = found > before ? found : before;
        const float base = largest == -__builtin_inff() ? 0 : largest;
        at_.largest[r] = largest;
        reg sum = V::set1(0);
        for (int64_t i = 0; i < whole; i += V::width) {
            const reg below = V::sub(V::load(scores + i), V::set1(base));
            const reg weight = V::exp(V::mul(below, V::set1(factor)));
            sum = V::add(sum, weight);
            put_weights(scores, i, weight);
        }
        for (int64_t i = whole; i < block.count; i += V::width) put_weights(scores, i, V::set1(0));
        float added = 0;
        G::Dot::template add_sums<1>(&sum, &added);
        add_total(block, r, added, (before - base) * factor);
    }

    // Those of earlier blocks become less where this one has the largest score.
    void add_total(const KeyBlock& block, int64_t r, float added, float difference) {
        float& total = at_.total[r];
        if (block.from == 0 || difference == 0) {
            total += added;
            return;
        }
        const reg less = V::exp(V::set1(difference));
        float lanes[V::width];
        V::store(lanes, less);
        total = total * lanes[0] + added;
        float* const sums = at_.sums + r * wide_stride;
        for (int64_t c = 0; c < shape_.width; c += V::width)
            V::store(sums + c, V::mul(V::load(sums + c), less));
    }

    // In the place of scores: the row's own have been read by then.
    static void put_weights(float* scores, int64_t i, reg weights) {
        if constexpr (is_rounded)
            V::store(reinterpret_cast<T*>(scores) + i, weights);
        else
            V::store(scores + i, weights);
    }

    // Multiplies the scores that a row sees and adds the mask, unless that can wait until weights
    // are computed. Whether it has.
    bool scale_first(const KeyBlock& block, int64_t r, int64_t seen, float* scores) const {
        const auto scaled = [&](auto masked) {
            for (int64_t i = 0; i < seen; i += V::width) {
                const int64_t left = seen - i, n = left < V::width ? left : V::width;
                const reg value = V::mul(V::load(scores + i), V::set1(scale_));
                V::store(scores + i, masked(value, i, n));
            }
            return true;
        };
        const int64_t offset = (piece_.begin + r) * shape_.mask[2] + block.from;
        if (shape_.mask_kind == AttentionMask::added) {
            const T* const mask = static_cast<const T*>(piece_.mask) + offset;
            return scaled([&](reg value, int64_t i, int64_t n) {
                return V::add(value, load_first<V>(mask + i, n));
            });
        }
        if (shape_.mask_kind == AttentionMask::kept) {
            const auto* const mask = static_cast<const uint8_t*>(piece_.mask) + offset;
            return scaled(
                [&](reg value, int64_t i, int64_t n) { return V::where(mask + i, n, value); });
        }
        if (scale_ > 0) return false;
        return scaled([](reg value, int64_t, int64_t) { return value; });
    }

    // Of whole vectors. What is no number is passed over here: it is a weight as well.
    static float largest_of(const float* scores, int64_t count) {
        constexpr int64_t chains = 4;
        reg largest[chains];
        for (reg& one : largest) one = V::set1(-__builtin_inff());
        int64_t i = 0;
        for (; i + chains * V::width <= count; i += chains * V::width)
#pragma GCC unroll 4
            for (int64_t k = 0; k < chains; ++k)
                largest[k] = V::max(V::load(scores + i + k * V::width), largest[k]);
        for (; i < count; i += V::width) largest[0] = V::max(V::load(scores + i), largest[0]);
        float lanes[V::width];
        V::store(lanes, V::max(V::max(largest[0], largest[1]), V::max(largest[2], largest[3])));
#pragma GCC unroll 4
        for (int64_t half = V::width / 2; half > 0; half /= 2)
#pragma GCC unroll 8
            for (int64_t lane = 0; lane < half; ++lane) {
                const float other = lanes[lane + half];
                lanes[lane] = other > lanes[lane] ? other : lanes[lane];
            }
        return lanes[0];
    }

    // What is not finite may come from values that other rows of the piece see, which have met this
    // row's zeros: how the rows are divided is not to be seen.
    __attribute__((noinline)) void run_alone(int64_t r) const {
        AttentionPiece row = piece_;
        row.begin += r;
        row.end = row.begin + 1;
        Attention(row).run();
    }

    // Whether the mask hides every key: else nothing is left of a row because its scores overflow.
    bool sees_nothing(int64_t r) const {
        const int64_t row = (piece_.begin + r) * shape_.mask[2];
        for (int64_t k = 0; k < shape_.columns; ++k) {
            const bool is_seen =
                shape_.mask_kind == AttentionMask::kept
                    ? static_cast<const uint8_t*>(piece_.mask)[row + k] != 0
                : shape_.mask_kind == AttentionMask::added
                    ? to_float(static_cast<const T*>(piece_.mask)[row + k]) != -__builtin_inff()
                    : true;
            if (is_seen) return false;
        }
        return true;
    }

    // A row that sees no key has zeros, as LibTorch's. Whether all are finite.
    bool finish(int64_t r) {
        const float total = at_.total[r];
        const float none = total == 0 && !sees_nothing(r) ? __builtin_nanf("") : 0;
        const reg factor = V::set1(total == 0 ? none : 1 / total);
        const float* const sums = at_.sums + r * wide_stride;
        T* const to = static_cast<T*>(piece_.result) + (piece_.begin + r) * shape_.result[2];
        const reg zero = V::set1(0);
        reg nothing = zero;
        for (int64_t c = 0; c < shape_.width; c += V::width) {
            const int64_t left = shape_.width - c;
            const reg mean = V::mul(V::load(sums + c), factor);
            nothing = V::fma(mean, zero, nothing);
            store_first<V>(to + c, mean, left < V::width ? left : V::width);
        }
        return V::sum(nothing) == 0;
    }

    const AttentionPiece& piece_;
    const AttentionShape& shape_;
    AttentionScratch& at_;
    int64_t rows_;
    float query_factor_, scale_;  // together that of the shape
};

template <class V, class G>
void attention(const AttentionPiece& piece) {
    Attention<V, G>(piece).run();
}
