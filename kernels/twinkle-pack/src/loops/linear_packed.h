// Linear layers whose weight lies in panels (operators/linear_prepack.h): outer products, as for
// many rows, which read each panel from its begin to its end while the next lines of it are
// fetched.

// What comes behind some groups of a panel: the tiles of a block's rows share the work of asking
// for it, so that the memory has some all the time. They take turns, group by group.
template <class G>
struct NextInTurns {
    const char* data;
    bool is_near;  // into the first cache, else the second
    int64_t next = 0, every = 1;

    NextInTurns after(int64_t groups) const {
        return {data + groups * group_bytes, is_near, next, every};
    }
    NextInTurns part(int64_t part, int64_t parts) const { return {data, is_near, part, parts}; }
    void ask_for_sixteen(int64_t) const {}
    void ask_for(int64_t group) {
        if (group != next) return;
        const char* const all = data + group * group_bytes;
        for (int64_t i = 0; i < group_bytes; i += 64)
            if (is_near)
                __builtin_prefetch(all + i, 0, 3);
            else
                __builtin_prefetch(all + i, 0, 2);
        next += every;
    }

    static constexpr int64_t group_bytes = panel_width<G> * 4;
};

// Or each asks for its share of sixteen groups at once, into the first cache.
template <class G>
struct NextInShares {
    const char* data;
    int64_t tile = 0, tiles = 1;

    NextInShares after(int64_t groups) const {
        return {data + groups * NextInTurns<G>::group_bytes, tile, tiles};
    }
    NextInShares part(int64_t part, int64_t parts) const { return {data, part, parts}; }
    void ask_for_sixteen(int64_t group) const {
        constexpr int64_t bytes = NextInTurns<G>::group_bytes, lines = 16 * bytes / 64;
        const char* const all = data + group * bytes;
        for (int64_t i = tile * lines / tiles; i < (tile + 1) * lines / tiles; ++i)
            __builtin_prefetch(all + i * 64, 0, 3);
    }
    void ask_for(int64_t) const {}
};

// All rows against a panel; `behind` is the one that follows. Some of its groups after the other,
// so that they stay in the first cache for all rows.
template <class G>
void packed_rows(const GroupRows& x, const int32_t* panel, int64_t groups, const int32_t* behind,
                 bool is_near, float* sums, int64_t stride) {
    const int64_t most = x.count > 2 * G::tile_rows ? 2 * chain_groups : chain_groups;
    for (int64_t at = 0; at < groups; at += most) {
        const int64_t count = groups - at < most ? groups - at : most;
        const GroupRows some{x.data + at, x.count, x.stride};
        const int32_t* const begin = panel + at * panel_width<G>;
        const auto* const next = reinterpret_cast<const char*>(
            at + count < groups ? begin + count * panel_width<G> : behind);
        if (is_near && x.count > G::tile_rows)
            outer_rows<G>(some, begin, count, NextInShares<G>{next}, sums, stride);
        else
            outer_rows<G>(some, begin, count, NextInTurns<G>{next, is_near}, sums, stride);
    }
}

// Some rows against all columns of the piece.
template <class V, class G>
class PackedBlock {
public:
    using T = typename G::T;

    PackedBlock(const LinearPiece& piece, int64_t first, int64_t rows)
        : piece_(piece), first_(first), groups_(piece.depth / G::per_group) {
        // As deep as there is room for these rows.
        const int64_t most = (many_rows * row_groups / rows - 16) / chain_groups * chain_groups;
        block_ = groups_ < most ? groups_ : most;
        x_ = {static_cast<int32_t*>(piece.scratch), rows, block_ + 16};  // not whole pages apart
        sums_ = reinterpret_cast<float*>(x_.data + many_rows * row_groups);
    }

    void compute() {
        const bool is_whole = block_ == groups_;
        if (is_whole) copy_rows(0, groups_);
        // Sums that would have to wait for the rest of the depth are kept for some columns.
        const int64_t columns = is_whole ? panel_width<G> : many_columns / factor_count(piece_);
        for (int64_t at = piece_.begin; at < piece_.end; at += columns)
            add_up(at, piece_.end - at < columns ? piece_.end - at : columns, is_whole);
    }

private:
    void copy_rows(int64_t from, int64_t count) {
        for (int64_t r = 0; r < x_.count; ++r)
            G::pack_row(x_.data + r * x_.stride,
                        static_cast<const T*>(piece_.rows[first_ + r]) + from * G::per_group,
                        count * G::per_group);
    }

    const int32_t* panel(int factor, int64_t column, int64_t from) const {
        return static_cast<const int32_t*>(piece_.factors[factor].weight) + column * groups_ +
               from * panel_width<G>;
    }

    void add_up(int64_t at, int64_t count, bool is_whole) {
        const int factors = factor_count(piece_);
        // Rows of sums that are a page apart would share the cache's sets.
        const int64_t width = count + 32;
        for (int64_t i = 0; i < factors * x_.count * width; ++i) sums_[i] = 0;
        for (int64_t from = 0; from < groups_; from += block_) {
            const int64_t depth = groups_ - from < block_ ? groups_ - from : block_;
            if (!is_whole) copy_rows(from, depth);
            for (int f = 0; f < factors; ++f)
                for (int64_t c = 0; c < count; c += panel_width<G>)
                    packed_rows<G>(x_, panel(f, at + c, from), depth,
                                   behind(f, at, at + c + panel_width<G>, at + count, from),
                                   piece_.fetch_near, sums_ + f * x_.count * width + c, width);
        }
        finish(at, count, width);
    }

    // The panel that is computed next, of a factor that has come as far as `column`.
    const int32_t* behind(int factor, int64_t begin, int64_t column, int64_t end,
                          int64_t from) const {
        if (column < end) return panel(factor, column, from);
        return factor + 1 < factor_count(piece_) ? panel(factor + 1, begin, from)
                                                 : panel(0, end, from);
    }

    void finish(int64_t at, int64_t count, int64_t width) {
        T* const result = static_cast<T*>(piece_.result) + at;
        finish_sums<V>(piece_, at, {sums_, sums_ + x_.count * width, x_.count, width},
                       result + first_ * piece_.result_stride, count);
    }

    const LinearPiece& piece_;
    int64_t first_, groups_, block_;
    GroupRows x_;
    float* sums_;
};

template <class V, class G>
void linear_packed(const LinearPiece& piece) {
    for (int64_t first = 0; first < piece.row_count; first += many_rows) {
        const int64_t left = piece.row_count - first, rows = left < many_rows ? left : many_rows;
        PackedBlock<V, G>(piece, first, rows).compute();
    }
}

// Puts the columns of a piece's weight into its result, in panels.
template <class G>
void lay_panels(const LinearPiece& piece) {
    const auto* const weight = static_cast<const typename G::T*>(piece.factors[0].weight);
    const int64_t stride = piece.factors[0].stride, groups = piece.depth / G::per_group;
    for (int64_t c = piece.begin; c < piece.end; c += panel_width<G>)
        G::pack_columns(static_cast<int32_t*>(piece.result) + c * groups, weight + c * stride,
                        stride, panel_width<G>, piece.depth);
}
