#pragma once
// How a convolution is divided among threads.

#include <cstdint>

namespace twinkle_pack {

// Blocks of pixels, each with units of channels of the result. A thread computes neighbouring
// units, and none beyond a block, so that each copies the weights that it needs once a block.
struct ConvGrid {
    int64_t blocks, pixels_each;  // the last one may have fewer
    int64_t units, granules;      // of channels, in this many granules

    // `granule`: channels that are computed together.
    int64_t first_channel(int64_t unit, int64_t granule) const {
        return granules * unit / units * granule;
    }
};

struct ConvDivision {
    int64_t pixels, panel, most_pixels;       // a block has whole panels
    int64_t channels, granule, most_in_unit;  // granules
    int64_t copies;                           // how often all of it is done: of groups, of rows
    int64_t products;                         // of a pixel with all channels
    int64_t threads;
};

// As few blocks as can be, unless with more of them threads have more equal parts.
ConvGrid divide(const ConvDivision& all);

}  // namespace twinkle_pack
