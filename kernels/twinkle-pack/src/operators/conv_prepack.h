#pragma once
// Weights of convolutions in blocks, as the loops read them (loops/conv_last_weights.h): made once,
// when a model is loaded, instead of in every call.
//
// A weight [out, in, kernel_h, kernel_w] becomes a dense tensor
// [slabs, out / 16, kernel_h, kernel_w, groups of a slab, 16, in of a group]: a group is what this
// CPU multiplies at a time, one number, or two of bfloat16.

#include "isa/functions.h"
#include "operator.h"

namespace twinkle_pack {

constexpr int64_t weight_block_dims = 7;

// Whether a weight lies as this CPU reads it for x with so many channels; its shape, if it does.
bool read_blocks(const View& weight, int64_t channels, ConvShape& shape);

// Lays out a plain weight of this shape, whose channels are whole slabs, and says so in the shape.
void lay_weight(ConvShape& shape, DType dtype, const void* weight, void* to, ParallelFor parallel);

}  // namespace twinkle_pack
