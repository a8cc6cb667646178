#pragma once
// Weights of linear layers in panels, as the loops read them (loops/linear_packed.h): made once,
// when a model is loaded, instead of in every call with many rows; few rows read memory in its
// order.
//
// A weight [columns, depth] becomes a dense tensor [columns / 32, depth / group, 32, group]: a
// group is what this CPU multiplies at a time, one number, or two of bfloat16. Tiles of AMX
// (isa/amx_packed.h) are 16 groups of 16 columns.

#include "operator.h"

namespace twinkle_pack {

constexpr int64_t panel_dims = 4;

// Whether a weight is in panels, of this CPU or of another one.
bool is_in_panels(const View& weight);
// Whether it is, as this CPU's loops read it.
bool is_for_this_cpu(const View& weight);
// The layer's sizes, whichever way its weight lies. It has two dimensions, or those of panels.
int64_t columns_of(const View& weight);
int64_t depth_of(const View& weight);

// Panels as a strided tensor [columns / 32, 32, depth / group, group]: dense it is PyTorch's
// weight.
struct PlainOrder {
    explicit PlainOrder(const View& panels);

    int64_t sizes[panel_dims], strides[panel_dims];
};

}  // namespace twinkle_pack
