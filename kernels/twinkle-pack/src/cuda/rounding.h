#pragma once
// Rows of x rounded to fp8, each with a scale (operators/families.h).

#include "cuda/launches.h"

namespace twinkle_pack::cuda {

struct RoundedRows {
    DType dtype;    // of x
    const void* x;  // [rows, depth], dense
    void* values;   // as many, at an address that 16 divides
    float* scales;
    int64_t rows, depth;
};

void launch_rounding(const RoundedRows& rows, const Queue& queue);

}  // namespace twinkle_pack::cuda
