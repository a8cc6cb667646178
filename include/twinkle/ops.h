#pragma once
// The bundled kernels as functions, each through an executor: what was measured decides between the
// kernel and LibTorch's own operators, for every shape. Nothing is measured unless selector() says
// so.
//
// They have gradients, once: those of apply_rotary are of x alone. Thread-safe. What the bundled
// kernels have no code for (a dtype, a device) LibTorch computes. Throw what LibTorch throws for
// arguments that do not fit, and Error(failed).

#include "twinkle/api.h"
#include "twinkle/autotune.h"
#include "twinkle/selector.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace twinkle::ops {

// Of all functions here: the user's store, offline. set_policy() and the like act on all of them.
TWINKLE_API ConfigSelectorChain& selector();

// Tunes a call of these functions that was recorded (record.h, TWINKLE_RECORD), on random numbers
// of its shapes, and lets selector() learn it. Throws Error: not_found (another operation),
// malformed (its arguments are others), refused (no candidate is left, or the policy says never).
TWINKLE_API Measurement tune_recorded(const Invocation& invocation,
                                      const AutotuneOptions& options = {});

TWINKLE_API at::Tensor silu(const at::Tensor& x);
TWINKLE_API at::Tensor gelu(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_tanh(const at::Tensor& x);
TWINKLE_API at::Tensor relu(const at::Tensor& x);

// The activation of gate, times up.
TWINKLE_API at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);
TWINKLE_API at::Tensor gelu_mul(const at::Tensor& gate, const at::Tensor& up);
TWINKLE_API at::Tensor gelu_tanh_mul(const at::Tensor& gate, const at::Tensor& up);

// Of the halves of the last dimension: the activation of the first, times the second.
TWINKLE_API at::Tensor silu_and_mul(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_and_mul(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_tanh_and_mul(const at::Tensor& x);
// The first, times silu of the second.
TWINKLE_API at::Tensor mul_and_silu(const at::Tensor& x);

// x / sqrt(mean(x²) + eps) over the last dimension in float32, times offset + weight; rounded to
// x's dtype before that product, or after it.
TWINKLE_API at::Tensor rms_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                                double eps = 1e-6, double offset = 0, bool round_last = false);
TWINKLE_API at::Tensor layer_norm(const at::Tensor& x, const std::optional<at::Tensor>& weight,
                                  const std::optional<at::Tensor>& bias, double eps = 1e-5);
// The norm of x + residual, and x + residual.
TWINKLE_API std::tuple<at::Tensor, at::Tensor> add_rms_norm(const at::Tensor& x,
                                                            const at::Tensor& residual,
                                                            const std::optional<at::Tensor>& weight,
                                                            double eps = 1e-6, double offset = 0,
                                                            bool round_last = false);
TWINKLE_API std::tuple<at::Tensor, at::Tensor> add_layer_norm(
    const at::Tensor& x, const at::Tensor& residual, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, double eps = 1e-5);

// x * cos + rotate(x) * sin on the first elements of each row, as many as cos has. rotate is
// (-second, first) of the halves, or of neighbours where interleaved.
TWINKLE_API at::Tensor apply_rotary(const at::Tensor& x, const at::Tensor& cos,
                                    const at::Tensor& sin, bool interleaved = false);

}  // namespace twinkle::ops
