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

// Their gradients, in the dtypes of what they belong to, each rounded once; `grad` is that of the
// result, in its dtype. The gradient of weight is a sum over all rows, the same for any number of
// threads.
void check_rms_norm_backward(const View& grad, const View& x, const View& weight);
void rms_norm_backward(const View& grad, const View& x, const View& weight, double eps,
                       void* grad_x, void* grad_weight, ParallelFor parallel);

void check_silu_mul_backward(const View& grad, const View& gate, const View& up);
void silu_mul_backward(const View& grad, const View& gate, const View& up, void* grad_gate,
                       void* grad_up, ParallelFor parallel);

}  // namespace twinkle_pack
