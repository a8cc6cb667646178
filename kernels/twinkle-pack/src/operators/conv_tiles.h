#pragma once
// Convolutions by tiles (isa/functions.h, ConvTiles), where channels lie last.

#include "operators/convolution.h"

namespace twinkle_pack {

// Whether a weight of this shape, in blocks, can be computed so: whole tiles of x's channels.
bool fits_tiles(const ConvShape& shape, int64_t group);

// The same for a call: its copy of x must not be much larger than x and the result.
bool fits_tiles(const ConvCall& call, int64_t group);

// x's channels are dense.
void compute_conv_tiles(const ConvCall& call, const ConvPiece& piece, ConvByTiles compute,
                        ParallelFor parallel);

}  // namespace twinkle_pack
