// Convolutions of bfloat16 by AMX where channels lie last, with weights in blocks
// (loops/conv_last_blocks.h). Tiles of x are 16 positions with up to 32 channels at a tap, as they
// lie; those of the weight as many groups of a block. Sums lie as results do.

// Two blocks of the weight of a slab, and all that positions see of x there.
struct TileSlab {
    const char *first, *second;
    int64_t taps, tap_bytes;  // from tap to tap
    const int64_t* seen;      // bytes from a position to each tap
    int64_t x_stride;         // from position to position
    int64_t groups;           // of a tile
};

// Tiles 0 to 3 are sums, 4 and 5 of x, 6 and 7 of the weight.
inline void multiply_slab(const TileSlab& slab, const char* upper, const char* lower,
                          NextLines next) {
    const int64_t tile_bytes = slab.groups * tile_row_bytes, x_bytes = slab.groups * 4;
    for (int64_t tap = 0; tap < slab.taps; ++tap) {
        const int64_t end = (tap + 1) * slab.tap_bytes;
        int64_t group = tap * slab.tap_bytes, channel = slab.seen[tap];
        for (; group < end; group += tile_bytes, channel += x_bytes) {
            next.ask();
            load_tile<6>(slab.first + group, 64);
            load_tile<4>(upper + channel, slab.x_stride);
            add_pairs_of_tiles<0, 4, 6>();
            load_tile<7>(slab.second + group, 64);
            add_pairs_of_tiles<1, 4, 7>();
            next.ask();
            load_tile<5>(lower + channel, slab.x_stride);
            add_pairs_of_tiles<2, 5, 6>();
            add_pairs_of_tiles<3, 5, 7>();
        }
    }
}

// How the weight lies.
struct TilePairs512 {
    using T = BFloat16;
    static constexpr int64_t per_group = 2;
};

constexpr int64_t kept_weight_bytes = 256 * 1024;  // in the second cache, beside x

// Some blocks of positions with all channels of a piece.
template <class V, class A>
class ConvByTiles {
public:
    explicit ConvByTiles(const ConvTiles& all)
        : all_(all),
          piece_(*all.piece),
          shape_(*piece_.shape),
          laid_(piece_, 0),
          division_(shape_, TilePairs512::per_group),
          rows_(all.positions < tile_rows ? all.positions : tile_rows),
          of_image_(tile_blocks(all.positions)),
          sums_(static_cast<float*>(piece_.scratch)),
          pixels_(reinterpret_cast<int64_t*>(sums_ + tile_positions * panel_columns)) {}

    void compute() {
        const TilesInUse tiles(rows_, all_.groups);
        for (int64_t block = all_.begin; block < all_.end; ++block)
            for (int tile = 0; tile < 2; ++tile) list_pixels(block, tile);
        // Weights that stay in the cache meet each block's positions one after the other, whose
        // results are neighbours.
        const bool is_kept = (piece_.end - piece_.begin) * shape_.depth * 2 <= kept_weight_bytes;
        if (is_kept)
            for (int64_t block = all_.begin; block < all_.end; ++block)
                for (int64_t c = piece_.begin; c < piece_.end; c += panel_columns)
                    compute_block(block, c, is_kept);
        else
            for (int64_t c = piece_.begin; c < piece_.end; c += panel_columns)
                for (int64_t block = all_.begin; block < all_.end; ++block)
                    compute_block(block, c, is_kept);
    }

private:
    // Of sixteen channels of the result, at least: the last ones of a piece may be alone.
    int64_t blocks_from(int64_t channel) const { return channel + last_lanes < piece_.end ? 2 : 1; }
    // The tiles of the last block end with the image's last position, and may have positions of
    // those before.
    int64_t first_position(int64_t block, int tile) const {
        const int64_t at = (block * 2 + tile) * tile_rows, last = all_.positions - tile_rows;
        return last < 0 ? 0 : at < last ? at : last;
    }
    const char* x(int64_t block, int tile) const {
        return all_.x + block / of_image_ * all_.image +
               first_position(block % of_image_, tile) * all_.pixel;
    }

    void compute_block(int64_t block, int64_t channel, bool is_kept) {
        if (piece_.residual) ask_for_residual(block, channel, is_kept);
        multiply(block, channel, is_kept);
        const int64_t left = all_.out_channels - channel;
        if (left < blocks_from(channel) * last_lanes)
            finish_part(block, channel, left);
        else if (blocks_from(channel) == 2)
            finish<2>(block, channel);
        else
            finish<1>(block, channel);
    }

    void multiply(int64_t block, int64_t channel, bool is_kept) {
        const int64_t block_bytes = shape_.weight_block * 4, two = blocks_from(channel);
        const auto laid = laid_;  // a copy: for all the compiler knows, tiles write members
        for_each_tile<4>([](auto i) { zero_tile<i>(); });
        LastDivision(division_).for_slabs([&](const LastSlab& slab) {
            const char* const first = bytes(laid.at(slab.channel, channel));
            const TileSlab some{first,       first + (two - 1) * block_bytes,
                                shape_.taps, laid.each * last_lanes * 4,
                                all_.taps,   all_.pixel,
                                all_.groups};
            const int64_t skipped = slab.channel * 4;
            // The same slab's weights of the channels that follow.
            const NextLines next(first + two * block_bytes, is_kept ? 0 : two * block_bytes,
                                 block - all_.begin, all_.end - all_.begin,
                                 2 * shape_.taps * laid.each / all_.groups);
            multiply_slab(some, x(block, 0) + skipped, x(block, 1) + skipped, next);
        });
        for_each_tile<4>([&](auto i) {
            store_tile<i>(sums_ + i / 2 * tile_rows * panel_columns + i % 2 * 16, panel_row_bytes);
        });
    }
    static const char* bytes(const float* from) { return reinterpret_cast<const char*>(from); }

    // Of the result, for each position of a block; none: -1.
    int64_t* pixels(int64_t block) const { return pixels_ + (block - all_.begin) * tile_positions; }
    void list_pixels(int64_t block, int tile) {
        const int64_t position = first_position(block % of_image_, tile);
        int64_t row = position / all_.pitch, column = position - row * all_.pitch;
        const int64_t first_row = block / of_image_ * all_.rows;
        int64_t* const to = pixels(block) + tile * tile_rows;
        for (int64_t r = 0; r < tile_rows; ++r) {
            const bool is_there = r < rows_ && column < all_.width;
            to[r] = is_there ? (first_row + row) * all_.width + column : -1;
            if (++column == all_.pitch) {
                column = 0;
                ++row;
            }
        }
    }

    const BFloat16* residual_at(int64_t pixel, int64_t channel) const {
        return static_cast<const BFloat16*>(piece_.residual) + pixel * shape_.residual_pixel +
               channel;
    }
    // Of what is computed next.
    void ask_for_residual(int64_t block, int64_t channel, bool is_kept) const {
        const bool is_last = channel + panel_columns >= piece_.end;
        if (is_kept && !is_last) {
            channel += panel_columns;
        } else if (block + 1 < all_.end) {
            ++block;
            if (is_kept) channel = piece_.begin;
        } else {
            if (is_last) return;
            block = all_.begin;
            channel += panel_columns;
        }
        for (int64_t p = 0; p < tile_positions; ++p)
            if (const int64_t pixel = pixels(block)[p]; pixel >= 0)
                __builtin_prefetch(residual_at(pixel, channel), 0, 2);
    }

    template <int vectors>
    void finish(int64_t block, int64_t channel) const {
        switch (residual_of(piece_)) {
            case Residual::none: return finish<vectors, Residual::none>(block, channel);
            case Residual::before_activation:
                return finish<vectors, Residual::before_activation>(block, channel);
            case Residual::after_activation:
                return finish<vectors, Residual::after_activation>(block, channel);
        }
    }

    // Reads members into locals first: the compiler must assume that stores change members.
    template <int vectors, Residual residual>
    void finish(int64_t block, int64_t channel) const {
        const ChannelScale<V> scales[] = {
            ChannelScale<V>::of_vector(piece_, channel, V::width),
            ChannelScale<V>::of_vector(piece_, channel + (vectors - 1) * V::width, V::width)};
        auto* const results = static_cast<BFloat16*>(piece_.result) + channel;
        const auto* const added = static_cast<const BFloat16*>(piece_.residual) + channel;
        const int64_t result_pixel = shape_.result_pixel, added_pixel = shape_.residual_pixel;
        const int64_t* const pixel = pixels(block);
        const float* sums = sums_;
        for (int64_t p = 0; p < tile_positions; ++p, sums += panel_columns) {
            if (pixel[p] < 0) continue;
            typename V::reg values[vectors];
            for (int v = 0; v < vectors; ++v) {
                const auto sum = V::load(sums + v * V::width);
                const auto more = residual == Residual::none
                                      ? sum
                                      : V::load(added + pixel[p] * added_pixel + v * V::width);
                values[v] = finished<V, A, residual>(scales[v], sum, more);
            }
            BFloat16* const to = results + pixel[p] * result_pixel;
            if constexpr (vectors == 2)
                V::store_pair(to, values[0], values[1]);
            else
                V::store(to, values[0]);
        }
    }

    // The last channels, where they are not whole vectors.
    void finish_part(int64_t block, int64_t channel, int64_t count) const {
        for (int64_t at = 0; at < count; at += V::width, channel += V::width) {
            const int64_t n = count - at < V::width ? count - at : V::width;
            const auto scale = ChannelScale<V>::of_vector(piece_, channel, n);
            auto* const results = static_cast<BFloat16*>(piece_.result) + channel;
            for (int64_t p = 0; p < tile_positions; ++p) {
                const int64_t pixel = pixels(block)[p];
                if (pixel < 0) continue;
                const auto* const added = piece_.residual ? residual_at(pixel, channel) : nullptr;
                const auto sum = V::load(sums_ + p * panel_columns + at);
                store_first<V>(results + pixel * shape_.result_pixel,
                               finished<V, A>(piece_, scale, sum, added, n), n);
            }
        }
    }

    const ConvTiles& all_;
    const ConvPiece& piece_;
    const ConvShape& shape_;
    LaidBlocks<TilePairs512> laid_;
    LastDivision division_;
    int64_t rows_, of_image_;
    float* sums_;
    int64_t* pixels_;
};

template <class V>
void conv_by_tiles(const ConvTiles& all) {
    with_activation(all.piece->finish, [&]<class A>(A*) { ConvByTiles<V, A>(all).compute(); });
}
