// Weights that lie in blocks (operators/conv_prepack.h), so that nothing of them is copied.

// The weights of a piece that lie in blocks, [slab][block][tap][group][lane]; a multiple of sixteen
// channels from `first` on.
template <class M>
struct LaidBlocks {
    const ConvShape& shape;
    const float* weights;
    int64_t first;
    int64_t each;  // channels of a slab in groups

    LaidBlocks(const ConvPiece& piece, int64_t from)
        : shape(*piece.shape), weights(static_cast<const float*>(piece.weight)), first(from) {
        each = last_slab_channels(groups_of(shape.channels, M::per_group), shape.taps);
    }

    const float* at(int64_t slab_channel, int64_t channel) const {
        const int64_t of_slab = shape.out_channels / last_lanes * shape.weight_block;
        return weights + slab_channel / each * of_slab + channel / last_lanes * shape.weight_block;
    }
    WeightBlocks blocks(const LastSlab& slab) const {
        return {at(slab.channel, first), shape.weight_block, each * last_lanes};
    }
    // What the next slab needs of these channels, or its first one of the next `left`.
    NextPanel behind(const LastSlab& slab, int64_t channels, int64_t left) const {
        const float* const next =
            slab.is_last ? at(0, first + channels) : at(slab.channel + each, first);
        const int64_t some = slab.is_last && left < channels ? left : channels;
        constexpr int64_t row = 512;
        const int64_t bytes = some / last_lanes * shape.weight_block * 4;
        return {reinterpret_cast<const char*>(next), row, bytes / row, row};
    }
};

// Puts all weights of a piece into its result, as LaidBlocks has them.
template <class V, class M>
void lay_blocks(const ConvPiece& piece) {
    const ConvShape& shape = *piece.shape;
    float* const copies = static_cast<float*>(piece.scratch);
    for (int64_t first = piece.begin; first < piece.end; first += last_lanes) {
        ConvPiece result = piece;
        result.weight = piece.result;
        const LaidBlocks<M> laid(result, first);
        LastDivision(shape, M::per_group).for_slabs([&](const LastSlab& slab) {
            const WeightBlocks from =
                copied_blocks<V>(LastWeights<M>(piece, slab, first), last_lanes, copies);
            const WeightBlocks blocks = laid.blocks(slab);
            for (int64_t tap = 0; tap < shape.taps; ++tap) {
                float* const to = const_cast<float*>(blocks.first) + tap * blocks.tap;
                const float* const row = from.first + tap * from.tap;
                for (int64_t i = 0; i < laid.each * last_lanes; ++i) to[i] = row[i];
            }
        });
    }
}
