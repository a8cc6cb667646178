// How convolutions where channels lie last divide the depth: into slabs, whose weights a group of
// channels of the result needs at a time.

constexpr int64_t last_chain = conv_chain, most_per_group = 2;

constexpr int64_t least_last_group = 64;  // channels of the result

// What M multiplies at a time.
constexpr int64_t groups_of(int64_t channels, int64_t per_group) {
    return (channels + per_group - 1) / per_group;
}

// Groups [channel, channel + channels) of channels of x at taps [tap, tap + taps), of which `chain`
// at a time are added up.
struct LastSlab {
    int64_t channel, channels, tap, taps, chain;
    bool is_first, is_last;

    // Rows of a tap in a block. With a row between them taps do not share places in the cache.
    int64_t tap_rows() const { return channels + (taps > 1 ? 1 : 0); }
    int64_t rows() const { return tap_rows() * taps; }
};

// How the depth is divided into slabs.
struct LastDivision {
    int64_t channels, taps;   // all of them; channels in groups
    int64_t each, taps_each;  // of a slab, at most

    LastDivision(const ConvShape& shape, int64_t per_group)
        : channels(groups_of(shape.is_patched ? shape.depth : shape.channels, per_group)),
          taps(shape.is_patched ? 1 : shape.taps),
          each(last_slab_channels(channels, taps)),
          taps_each(taps < last_depth ? taps : last_depth) {}

    // As many channels of the result as the scratch has room for.
    int64_t group() const {
        const int64_t fitting = last_depth / (each * taps_each) * least_last_group;
        return fitting < most_last_group ? fitting : most_last_group;
    }

    // Calls f with one slab after the other.
    template <class F>
    void for_slabs(F f) const {
        for (int64_t channel = 0; channel < channels; channel += each)
            for (int64_t tap = 0; tap < taps; tap += taps_each) {
                const int64_t left = channels - channel, taps_left = taps - tap;
                const int64_t some = left < each ? left : each;
                f(LastSlab{channel, some, tap, taps_left < taps_each ? taps_left : taps_each,
                           last_chain / some, channel == 0 && tap == 0,
                           left <= each && taps_left <= taps_each});
            }
    }
};
