#pragma once
// The bundled kernels as functions, each through an executor: what was measured decides between the
// kernel and LibTorch's own operators, for every shape. Nothing is measured unless selector() says
// so.
//
// The bundled kernels take float32, float64, bfloat16 and float16, all tensors of a call on one
// device and, unless it is said, of one dtype. What they have no code for (a dtype, a device, a
// layout) LibTorch computes. The functions have gradients, once: those of apply_rotary are of x
// alone. Thread-safe. They throw what LibTorch throws for arguments that do not fit, and
// Error(failed).

#include "twinkle/api.h"
#include "twinkle/autotune.h"
#include "twinkle/selector.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

namespace twinkle::ops {

// Serves all functions here: the user's store, offline. set_policy() and the like act on all of
// them.
TWINKLE_API ConfigSelectorChain& selector();

// Tunes a call of these functions that was recorded (record.h, TWINKLE_RECORD), on random numbers
// of its shapes, and lets selector() learn it. Throws Error: not_found (another operation),
// malformed (its arguments are others), refused (no candidate is left, or the policy says never).
TWINKLE_API Measurement tune_recorded(const Invocation& invocation,
                                      const AutotuneOptions& options = {});

// Act on every element, whatever the shape.
TWINKLE_API at::Tensor silu(const at::Tensor& x);
TWINKLE_API at::Tensor gelu(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_tanh(const at::Tensor& x);
// The same as transformers' NewGELUActivation and FastGELUActivation write it.
TWINKLE_API at::Tensor gelu_new(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_fast(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_quick(const at::Tensor& x);  // x * sigmoid(1.702 * x)
TWINKLE_API at::Tensor relu(const at::Tensor& x);

// The activation of gate, times up.
TWINKLE_API at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);
TWINKLE_API at::Tensor gelu_mul(const at::Tensor& gate, const at::Tensor& up);
TWINKLE_API at::Tensor gelu_tanh_mul(const at::Tensor& gate, const at::Tensor& up);

// Take the halves of the last dimension: the activation of the first, times the second.
TWINKLE_API at::Tensor silu_and_mul(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_and_mul(const at::Tensor& x);
TWINKLE_API at::Tensor gelu_tanh_and_mul(const at::Tensor& x);
// The first, times silu of the second.
TWINKLE_API at::Tensor mul_and_silu(const at::Tensor& x);

// x / sqrt(mean(x²) + eps) over the last dimension in float32, times offset + weight; rounded to
// x's dtype before that product, or after it. Of all norms weight and bias have as many elements as
// that dimension, of x's dtype or float32.
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

// x weight^T + bias: x is [..., depth], a weight [columns, depth], a bias [columns]; the result
// [..., columns]. Summed in float32 and rounded once, behind the activation.
TWINKLE_API at::Tensor linear(const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias = std::nullopt);
TWINKLE_API at::Tensor linear_silu(const at::Tensor& x, const at::Tensor& weight,
                                   const std::optional<at::Tensor>& bias = std::nullopt);
TWINKLE_API at::Tensor linear_gelu(const at::Tensor& x, const at::Tensor& weight,
                                   const std::optional<at::Tensor>& bias = std::nullopt);
TWINKLE_API at::Tensor linear_gelu_tanh(const at::Tensor& x, const at::Tensor& weight,
                                        const std::optional<at::Tensor>& bias = std::nullopt);
TWINKLE_API at::Tensor linear_relu(const at::Tensor& x, const at::Tensor& weight,
                                   const std::optional<at::Tensor>& bias = std::nullopt);
// The activation of one layer of x, times another one with as many columns.
TWINKLE_API at::Tensor linear_silu_mul(const at::Tensor& x, const at::Tensor& gate_weight,
                                       const std::optional<at::Tensor>& gate_bias,
                                       const at::Tensor& up_weight,
                                       const std::optional<at::Tensor>& up_bias);
TWINKLE_API at::Tensor linear_gelu_mul(const at::Tensor& x, const at::Tensor& gate_weight,
                                       const std::optional<at::Tensor>& gate_bias,
                                       const at::Tensor& up_weight,
                                       const std::optional<at::Tensor>& up_bias);
TWINKLE_API at::Tensor linear_gelu_tanh_mul(const at::Tensor& x, const at::Tensor& gate_weight,
                                            const std::optional<at::Tensor>& gate_bias,
                                            const at::Tensor& up_weight,
                                            const std::optional<at::Tensor>& up_bias);
// Two or three layers of one x, as q, k and v of attention; their columns may differ.
TWINKLE_API std::tuple<at::Tensor, at::Tensor> linear2(const at::Tensor& x,
                                                       const at::Tensor& weight1,
                                                       const std::optional<at::Tensor>& bias1,
                                                       const at::Tensor& weight2,
                                                       const std::optional<at::Tensor>& bias2);
TWINKLE_API std::tuple<at::Tensor, at::Tensor, at::Tensor> linear3(
    const at::Tensor& x, const at::Tensor& weight1, const std::optional<at::Tensor>& bias1,
    const at::Tensor& weight2, const std::optional<at::Tensor>& bias2, const at::Tensor& weight3,
    const std::optional<at::Tensor>& bias3);

using Size2d = std::array<std::int64_t, 2>;  // height, width

enum class ImageActivation : std::int64_t { none, relu, relu6, silu, gelu, hardswish };

// A convolution, and what follows it.
struct Conv2dOptions {
    Size2d stride{1, 1};
    Size2d padding{0, 0};
    Size2d dilation{1, 1};
    std::int64_t groups = 1;
    // Batch normalization with these statistics, if both are there; gain and offset are its weight
    // and bias. [channels of the result], of x's dtype or float32. Statistics have no gradients.
    std::optional<at::Tensor> mean{};
    std::optional<at::Tensor> variance{};
    std::optional<at::Tensor> gain{};
    std::optional<at::Tensor> offset{};
    double eps = 1e-5;
    // Added before the activation, or after it. As the result is.
    std::optional<at::Tensor> residual{};
    bool residual_last = false;
    ImageActivation activation = ImageActivation::none;
    bool channels_last = false;  // the result's layout; else that of LibTorch's
};
// Takes images [count, channels, height, width] and a weight [channels of the result, channels /
// groups, height, width]; a bias [channels of the result]. Uses the bundled kernels on a CPU,
// plain or, of float32, channels last.
TWINKLE_API at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight,
                              const std::optional<at::Tensor>& bias = std::nullopt,
                              const Conv2dOptions& how = {});

struct MaxPool2dOptions {
    std::optional<Size2d> stride{};  // none: the kernel's size
    Size2d padding{0, 0};
    Size2d dilation{1, 1};
    bool ceil_mode = false;
};
// The largest of each window of images, as above.
TWINKLE_API at::Tensor max_pool2d(const at::Tensor& x, const Size2d& kernel,
                                  const MaxPool2dOptions& how = {});

struct AttentionOptions {
    // [rows, keys] or [batch, heads, rows, keys], where batch, heads and rows may be 1: of the
    // query's dtype, it is added to the scores; of bool, what is false is left out.
    std::optional<at::Tensor> mask{};
    bool causal = false;            // row i sees keys up to i; without a mask
    std::optional<double> scale{};  // of the scores; none: 1 / sqrt(width)
};
// softmax(query key^T * scale + mask) value, as torch.nn.functional.scaled_dot_product_attention,
// of [batch, heads, rows, width]. Fewer heads of key and value serve several of the query. By the
// bundled kernels on AMD's CPUs.
TWINKLE_API at::Tensor attention(const at::Tensor& query, const at::Tensor& key,
                                 const at::Tensor& value, const AttentionOptions& how = {});

}  // namespace twinkle::ops
