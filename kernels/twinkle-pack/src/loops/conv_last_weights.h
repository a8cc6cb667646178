// Weights of convolutions where channels lie last: in blocks of sixteen channels of the result,
// [tap][group][lane], into which they are copied slab by slab, unless they lie so
// (operators/conv_prepack.h).
//
// M, what multiplies: `T`, `per_group`: channels of x, 4 bytes together, whose products one
//    instruction adds to a sum in float32; `factor`, a vector of such groups; static
//    broadcast(const T*), load(const float*), fma(x, weights, sums), and
//    transpose_to<by_channel>(from, stride, rows, count, to, places): element d of row r, of
//    `count`, goes to where places[d] says, in the lane r, and lanes of rows beyond it are zeros.
//    `count` is at most that of a vector's lanes, or of the channels of as many groups if
//    neighbours are channels.

// Where a slab's weights come from and go to.
template <class M>
struct LastWeights {
    using T = typename M::T;
    const ConvShape& shape;
    const LastSlab& slab;
    const T* from;  // of the first channel of the result
    // Neighbours in memory are neighbours along the channels of x, or along the taps of all these;
    // or along some of the taps of one.
    bool by_channel, by_some_taps;
    int64_t rows, along;  // elements

    LastWeights(const ConvPiece& piece, const LastSlab& of, int64_t first)
        : shape(*piece.shape),
          slab(of),
          from(static_cast<const T*>(piece.weight) + first * shape.depth),
          by_channel(shape.weight_in == 1),
          by_some_taps(!by_channel && of.taps < shape.taps),
          rows(by_channel     ? of.taps
               : by_some_taps ? channels()
                              : 1),
          along(by_channel     ? channels()
                : by_some_taps ? of.taps
                               : channels() * of.taps) {}

    // The last group may have fewer than others.
    int64_t channels() const {
        const int64_t all = shape.is_patched ? shape.depth : shape.channels;
        const int64_t left = all - slab.channel * M::per_group;
        return left < slab.channels * M::per_group ? left : slab.channels * M::per_group;
    }

    // What the next slab needs of these channels, or its first one of the next `left`.
    NextPanel behind(int64_t out_channels, int64_t left) const {
        if (by_channel && shape.taps > 1) return {};
        constexpr auto size = static_cast<int64_t>(sizeof(T));
        const T* const next = slab.is_last ? from + out_channels * shape.depth : row(0) + along;
        return {reinterpret_cast<const char*>(next), shape.depth * size,
                slab.is_last && left < out_channels ? left : out_channels, along * size};
    }

    const T* row(int64_t r) const {
        const int64_t channel = slab.channel * M::per_group + (by_channel ? 0 : r);
        return from + channel * shape.weight_in +
               (slab.tap + (by_channel ? r : 0)) * shape.weight_tap;
    }
    // The places of neighbours in the slab, in elements.
    void list_places(int64_t r, int64_t* to) const {
        const int64_t tap_elements = slab.tap_rows() * M::per_group;
        int64_t c = by_channel ? 0 : r, tap = 0;
        for (int64_t k = 0; k < along; ++k) {
            to[k] = by_channel ? r * tap_elements + k : tap * tap_elements + c;
            if (++tap == slab.taps) {
                tap = 0;
                ++c;
            }
        }
    }
};

// Blocks of weights: in units of 4 bytes from block to block, and from tap to tap.
struct WeightBlocks {
    const float* first;
    int64_t block, tap;

    WeightBlocks from(int64_t channel, int64_t tap_from) const {
        return {first + channel / last_lanes * block + tap_from * tap, block, tap};
    }
};

// Blocks of `channels` of the result; lanes beyond are zeros.
template <class V, class M>
WeightBlocks copied_blocks(const LastWeights<M>& weights, int64_t channels, float* to) {
    const LastSlab& slab = weights.slab;
    const int64_t depth = weights.shape.depth, block = slab.rows() * last_lanes;
    const int64_t step = V::width * (weights.by_channel ? M::per_group : 1);
    int64_t places[last_depth * most_per_group];
    for (int64_t r = 0; r < weights.rows; ++r) {
        weights.list_places(r, places);
        for (int64_t c = 0; c < channels; c += V::width) {
            const auto* const from = weights.row(r) + c * depth;
            float* const into = to + c / last_lanes * block + c % last_lanes;
            const int64_t left = channels - c, count = left < V::width ? left : V::width;
            for (int64_t k = 0; k < weights.along; k += step) {
                const int64_t behind = weights.along - k, some = behind < step ? behind : step;
                if (weights.by_channel)
                    M::template transpose_to<true>(from + k, depth, count, some, into, places + k);
                else
                    M::template transpose_to<false>(from + k, depth, count, some, into, places + k);
            }
        }
    }
    return {to, block, slab.tap_rows() * last_lanes};
}
