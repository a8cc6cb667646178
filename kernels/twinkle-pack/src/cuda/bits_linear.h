#pragma once
// y = x W^T + bias for weights packed in 8 or 4 bits. Uses nothing of CUDA or LibTorch, like
// launches.h.

#include "cuda/launches.h"

namespace twinkle_pack::cuda {

enum class Packing { int8, int4, fp8 };

// All dense, as operators/families.h says: x [rows, depth], values, scales, bias [outputs] or null,
// y [rows, outputs]. x and values begin at addresses that 16 divides.
struct PackedLayer {
    Packing packing;
    DType dtype;  // of x, bias and y
    const void *x, *values, *scales, *bias;
    void* y;
    int64_t rows, outputs, depth;
};

// Whether launch_packed computes it, and not slower than a product with the unpacked weight, as far
// as measured.
bool serves(const PackedLayer& layer, int device);
// Of one that it serves. Weights enter the product exactly, x with 16 bits of its mantissa or all;
// sums are of float32, and the same in every call; each result is rounded once.
void launch_packed(const PackedLayer& layer, const Queue& queue);

}  // namespace twinkle_pack::cuda
