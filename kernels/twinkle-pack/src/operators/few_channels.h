#pragma once
// Convolutions of images with few channels, as first layers have them, where the result's channels
// lie last.

#include "operators/convolution.h"

namespace twinkle_pack {

// How x's copy lies.
struct RunRows {
    int64_t apart = 1;        // rows that are so far apart lie one behind the other
    int64_t multiple = 1;     // of which a row's pixels are
    int64_t bytes_after = 0;  // for the caller
};

// Whether a row of the kernel can be one run of elements of a copy of x: one group, no gaps, and a
// copy that is not much larger than the result.
bool can_be_runs(const ConvCall& call, RunRows rows = {});

// The shape of such a convolution, but for x's strides.
ConvShape shape_of_runs(const ConvShape& shape, int64_t per_group);

// Makes `piece`, of `call`, one of a convolution of kernel rows: x is copied, pixel by pixel with
// all its channels, with its padding and with as many channels of zeros as complete a group of
// `per_group`, and so is the weight. Elements have `size` bytes. The copies are in call_scratch;
// returns what is behind them, aligned to a line.
void* make_runs(ConvCall& call, ConvPiece& piece, int64_t size, int64_t per_group,
                ParallelFor parallel, RunRows rows = {});

}  // namespace twinkle_pack
