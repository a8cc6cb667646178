#pragma once
// Masks of attention that leave nothing out: models without a mask of their own are exported with
// `arange(length) >= 0`, where a trace has none. Attention without a mask computes the same, and
// faster; FlashAttention takes no mask.

#include "runtime/exported/program.h"

namespace twinkle::runtime::exported {

// Takes the mask from each scaled_dot_product_attention whose mask is true everywhere, whatever the
// sizes are.
void drop_full_masks(Program& program);

}  // namespace twinkle::runtime::exported
