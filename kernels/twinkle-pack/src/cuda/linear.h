#pragma once
// y = x W^T + bias, for few rows of x. Uses nothing of CUDA or LibTorch, like launches.h.

#include "cuda/launches.h"

namespace twinkle_pack::cuda {

// All dense: x [rows, inner], weight [outputs, inner], bias [outputs] or null, y [rows, outputs].
// x and weight begin at addresses that 16 divides.
struct LinearLayer {
    DType dtype;
    const void *x, *weight, *bias;
    void* y;
    int64_t rows, outputs, inner;
};

// Whether launch_linear computes it, and not slower than LibTorch's own, as far as measured.
bool serves(const LinearLayer& linear, int device);
// Of one that it serves. Sums are of float32, and the same in every call; each result is rounded
// once.
void launch_linear(const LinearLayer& linear, const Queue& queue);

}  // namespace twinkle_pack::cuda
