#pragma once
// The operators by family.

#include "operator.h"

namespace twinkle_pack {

struct OperatorList {
    const Operator* first;
    int count;
};

// silu, gelu, gelu_tanh, gelu_new, gelu_fast, gelu_quick, relu(x), each with its gradient. All
// operators compute half precisions in float32 and round once.
OperatorList unary_operators();
// silu_mul, gelu_mul, gelu_tanh_mul(gate, up): act(gate) * up (PyTorch rounds after act too).
OperatorList gated_operators();
// silu_and_mul …(x): act(first half of each row) * second half; mul_and_silu: first *
// silu(second).
OperatorList halves_operators();

// Root mean square normalization over the last dimension:
//     normal = x / sqrt(mean(x²) + eps)                                   in float32
//     round_last: ((offset + weight) * normal), rounded to x's dtype      (Olmo; Gemma: offset 1)
//     else:       (offset + weight) * (normal rounded to x's dtype)       (Llama)
// the latter with the dtype that PyTorch promotes to. A float32 x is rounded once at the end. Where
// one is float64 everything is computed in float64 (more exact than the originals, which round
// through float32). add_rms_norm normalizes x + residual, rounded to their dtype, and returns it
// too.
OperatorList rms_norm_operators();
// Layer normalization over the last dimension; weight and bias have x's dtype or float32.
OperatorList layer_norm_operators();
// Rotary position embedding: x * cos + rotate(x) * sin on the first R elements of each row, where
// cos and sin have R in the last dimension and broadcast to x's others.
OperatorList rotary_operators();

// Linear layers: x weight^T + bias, summed in float32 and rounded once, with what follows:
// linear; linear_silu, linear_gelu, linear_gelu_tanh, linear_relu(x, weight, bias);
// linear_silu_mul, linear_gelu_mul, linear_gelu_tanh_mul(x, gate_weight, gate_bias, up_weight,
// up_bias): act(gate) * up; linear2, linear3: two or three layers of one input.
OperatorList linear_operators();
// A weight as they read it on this CPU (operators/linear_prepack.h), or None.
OperatorList linear_prepack_operators();

// conv2d(x, weight, bias, mean, variance, gain, offset, eps, residual, residual_last, stride,
// padding, dilation, groups, activation, channels_last): a
// convolution; its batch normalization with these
// statistics, if there are any; plus the residual, before the activation (0 none, 1 relu, 2 relu6,
// 3 silu, 4 gelu, 5 hardswish) or after it (`residual_last`); all in float32, rounded once. None
// where LibTorch's own is to be used: on other devices, for other layouts than the plain one and,
// of float32, channels last, and whatever LibTorch refuses. The result has the layout that
// LibTorch's has, or channels last where the call asks for it and can have it.
OperatorList conv2d_operators();
// A weight as conv2d reads it on this CPU (operators/conv_prepack.h), or None.
OperatorList conv_prepack_operators();
// The largest element of each window, or None, as above.
OperatorList max_pool2d_operators();

// attention(query, key, value, mask, scale, causal, grouped): softmax(query key^T * scale + mask)
// value of [batch, heads, rows, width]; a mask of the query's dtype is added, of a bool one what is
// false is left out. `grouped`: several heads of the query share one of key and value. None where
// LibTorch's own is to be used. The result has the query's order in memory.
OperatorList attention_operators();

// Linear layers whose weights have fewer bits: linear_int8, linear_int4(x, values, scales, bias).
//   values: uint8 [columns, depth], or of int4 [columns, depth / 2]; scales: float32 [columns,
//   depth / 64]. A weight is its value, less 128 or 8, times the scale of its 64.
//   On a Hopper more than 32 rows of bfloat16 are multiplied by weights and scales of bfloat16.
//   Both lie in blocks of 16 columns, of which the last may have fewer. A block has its groups of
//   64 along the depth one after the other; of a group, values: four of each column, four more of
//   each column, and so on; of int4, a byte has one of the first 32 in its lower half and the one
//   that is 32 further in its upper half. scales: one of each column.
// On a CPU x is rounded to 8 bits in the call, in groups of 64 with a scale each. A row of x with
// an infinite value or a NaN has NaN as its result. Without gradients.
OperatorList bits_linear_operators();

// linear_fp8(x, values, scales, bias): values: float8_e4m3fn (fp8.h) [columns, depth]; scales:
//   float32 [columns, 1]. A weight is its value times the scale of its row. On a CPU by
//   unpack_fp8 and LibTorch's own. On a Hopper or later more than 32 rows of x are rounded as by
//   round_to_fp8, too, if 16 divides the columns.
// unpack_int8, unpack_int4, unpack_fp8(x, values, scales): the weight in x's dtype [columns,
// depth];
//   x has that depth and is not read otherwise.
// round_to_fp8(x): of a dense matrix the values, float8_e4m3fn, and the scale of each row, float32
//   [rows, 1]. A row's largest magnitude becomes 448.
OperatorList packing_operators();

}  // namespace twinkle_pack
