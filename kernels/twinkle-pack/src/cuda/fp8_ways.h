#pragma once
// Linear layers with weights of fp8 and more rows of x than bits_linear.h has kernels for. Rows of
// x are rounded to fp8, too, each with a scale. On Hopper alone: the file that defines these is
// compiled for its own instructions (wgmma.h).

#include "cuda/bits_linear.h"

namespace twinkle_pack::cuda {

// Whether it is faster than LibTorch's product of the same numbers, as far as measured.
bool fp8_products_serve(const PackedLayer& layer, int device);
// Of one that it serves: bytes for rounded rows.
int64_t fp8_workspace(const PackedLayer& layer);
// Sums are the same in every call; each result is rounded once.
void launch_fp8_products(const PackedLayer& layer, const Queue& queue);

}  // namespace twinkle_pack::cuda
