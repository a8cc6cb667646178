// Winograd's minimal filtering, F(2 x 2, 3 x 3) (Lavin and Gray, arXiv:1509.09308): four results of
// a 3 x 3 convolution from 16 products for each channel of x, instead of 36. Here are the weights
// for these products, in blocks of sixteen channels of the result: [product][block][channel of
// x][lane].

// G w of three numbers, where G is ((1, 0, 0), (1/2, 1/2, 1/2), (1/2, -1/2, 1/2), (0, 0, 1)).
template <class V>
inline __attribute__((always_inline)) void spread_three(const typename V::reg (&w)[3],
                                                        typename V::reg (&to)[4]) {
    const auto half = V::set1(0.5F), minus_half = V::set1(-0.5F);
    const auto outer = V::mul(V::add(w[0], w[2]), half);
    to[0] = w[0];
    to[1] = V::fma(w[1], half, outer);
    to[2] = V::fma(w[1], minus_half, outer);
    to[3] = w[2];
}

// G w G^T of the vectors w[tap], `tap` floats apart.
template <class V>
inline __attribute__((always_inline)) void spread_kernel(const float* w, int64_t tap, float* to,
                                                         int64_t to_stride) {
    typename V::reg columns[3][4];  // of G w
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
        const typename V::reg column[3] = {V::load(w + j * tap), V::load(w + (3 + j) * tap),
                                           V::load(w + (6 + j) * tap)};
        spread_three<V>(column, columns[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        const typename V::reg row[3] = {columns[0][i], columns[1][i], columns[2][i]};
        typename V::reg spread[4];
        spread_three<V>(row, spread);
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) V::store(to + (4 * i + j) * to_stride, spread[j]);
    }
}

// Of the channels [begin, end) of a piece, into its `winograd_weights`.
template <class V, class M>
void winograd_weights(const ConvPiece& piece) {
    auto& at = *static_cast<LastScratch*>(piece.scratch);
    const int64_t channels = piece.shape->channels;
    for (int64_t first = piece.begin; first < piece.end; first += last_lanes) {
        const int64_t left = piece.end - first;
        LastDivision(*piece.shape, 1).for_slabs([&](const LastSlab& slab) {
            const LastWeights<M> weights(piece, slab, first);
            const int64_t lanes = left < last_lanes ? left : last_lanes;
            // Lanes that no vector reaches stay what they were, and their products are not stored.
            const WeightBlocks blocks = piece.shape->weight_block != 0
                                            ? LaidBlocks<M>(piece, first).blocks(slab)
                                            : copied_blocks<V>(weights, lanes, at.weights);
            float* const to =
                piece.winograd_weights + (first * channels + slab.channel * last_lanes);
            for (int64_t c = 0; c < slab.channels; ++c)
                for (int64_t lane = 0; lane < lanes; lane += V::width)
                    spread_kernel<V>(blocks.first + c * last_lanes + lane, blocks.tap,
                                     to + c * last_lanes + lane, piece.winograd_stride);
        });
    }
}
