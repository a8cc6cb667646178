#pragma once
// Windows that see one channel each, over images whose channels lie last.

#include "isa/functions.h"
#include "operator.h"

namespace twinkle_pack {

// All channels of all rows of the result, divided among threads. `whole.shape` is that of all
// channels.
void compute_window_rows(const ConvPiece& whole, Conv compute, ParallelFor parallel);

}  // namespace twinkle_pack
