#pragma once
// Convolutions of 3 x 3 pixels by fewer products than they have (loops/winograd.h).

#include "operators/convolution.h"

namespace twinkle_pack {

// Of calls that are computed where channels lie last, those that take less time so.
bool is_winograd(const ConvCall& call);
void compute_winograd(ConvPiece whole, ParallelFor parallel);

}  // namespace twinkle_pack
