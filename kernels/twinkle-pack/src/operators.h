#pragma once
// The operators, in two steps: check (throws std::runtime_error, tells the result's dtype), then
// compute into a contiguous result that the caller has allocated, from inputs that need no copy.

#include <cstdint>

#include "view.h"

namespace twinkle_pack {

// Splits [0, end) over threads, in pieces of at least `grain`.
using ParallelFor = void (*)(int64_t end, int64_t grain,
                             void (*body)(int64_t begin, int64_t end, void* context),
                             void* context);

// Whether an operator cannot read this tensor where it lies: the caller passes a contiguous copy.
// (It reads rows, the last dimension, that are contiguous in themselves, wherever they lie.)
bool must_copy(const View& view);

// Root mean square normalization over the last dimension, as transformers' LlamaRMSNorm:
//     normal = x / sqrt(mean(x²) + eps)        in float32
//     result = weight * (normal rounded to x's dtype)
// with the dtype that PyTorch promotes to: that of both where they are equal, else float64 where
// one is, else float32. A float32 x has no rounding in between: its result is rounded once. Where
// one is float64 everything is computed in float64 (more exact than the original, which rounds
// through float32).
DType check_rms_norm(const View& x, const View& weight);
void rms_norm(const View& x, const View& weight, double eps, void* result, ParallelFor parallel);

// silu(gate) * up, both of one shape and dtype. Half precisions are computed in float32 and rounded
// once (PyTorch rounds after silu too).
DType check_silu_mul(const View& gate, const View& up);
void silu_mul(const View& gate, const View& up, void* result, ParallelFor parallel);

}  // namespace twinkle_pack
