#pragma once
// Convolutions by tiles (isa/functions.h, ConvTiles), where channels lie last.

#include "operators/convolution.h"

namespace twinkle_pack {

// Whether a weight of this shape, in blocks, can be computed so: x's channels in tiles of one size,
// which is not too small.
bool fits_tiles(const ConvShape& shape, int64_t group);

// The same for a call: its copy of x must not be much larger than x and the result.
bool fits_tiles(const ConvCall& call, int64_t group);

// x's channels are dense.
void compute_conv_tiles(const ConvCall& call, const ConvPiece& piece, int64_t group,
                        ConvByTiles compute, ParallelFor parallel);

// With a plain weight that is laid out in the call: whether that is worth it, and the call.
bool is_laid_in_call(const ConvCall& call, int64_t group);
void compute_laid_conv_tiles(ConvCall& call, ConvPiece piece, int64_t group, ConvByTiles compute,
                             ParallelFor parallel);

// Of few channels, with a plain weight (operators/few_channels.h): whether rows of the kernel can
// be computed so, and the call.
bool fits_tile_runs(const ConvCall& call, int64_t group);
void compute_conv_tile_runs(ConvCall& call, ConvPiece piece, int64_t group, ConvByTiles compute,
                            ParallelFor parallel);

}  // namespace twinkle_pack
