#pragma once
// Linear layers with packed weights for more rows of x than bits_tiles.h is fast for, on Hopper
// alone: the file that defines these is compiled for its own instructions (wgmma.h).

#include "cuda/bits_linear.h"

namespace twinkle_pack::cuda {

// Of one that bits_linear.h serves but for its rows, on such a GPU: whether it is faster so.
bool strips_serve(const PackedLayer& layer);
void launch_strips(const PackedLayer& layer, const Queue& queue);

}  // namespace twinkle_pack::cuda
