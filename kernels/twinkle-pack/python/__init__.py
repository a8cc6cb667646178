"""Operators for language models on the CPU, with their gradients."""

from . import layers
from .activations import gelu, gelu_fast, gelu_new, gelu_quick, gelu_tanh, relu, silu
from .attention import fused_attention
from .convolutions import fused_conv2d, fused_max_pool2d
from .fused import (fused_add_layer_norm, fused_add_rms_norm, fused_gelu_and_mul, fused_gelu_mul,
                    fused_gelu_tanh_and_mul, fused_gelu_tanh_mul, fused_rms_norm, fused_silu_and_mul, fused_silu_mul)
from .fused_linear import (fused_linear, fused_linear2, fused_linear3, fused_linear_gelu, fused_linear_gelu_mul,
                           fused_linear_gelu_tanh, fused_linear_gelu_tanh_mul, fused_linear_relu, fused_linear_silu,
                           fused_linear_silu_mul)
from .fused_rotary import fused_exported_rotary, fused_partial_rotary, fused_rotary
from .gates import gelu_and_mul, gelu_mul, gelu_tanh_and_mul, gelu_tanh_mul, mul_and_silu, silu_and_mul, silu_mul
from .linears import linear, linear_gelu_mul, linear_gelu_tanh_mul, linear_silu_mul
from .norms import add_layer_norm, add_rms_norm, apply_rms_norm, layer_norm, rms_norm
from .rotary import apply_rotary, apply_rotary_transformers
from .written_attention import (fused_attention_dropout, fused_attention_left_out, fused_biased_attention,
                                fused_exported_grouped_attention, fused_grouped_attention, fused_written_attention)

__all__ = [
    "layers", "silu", "gelu", "gelu_tanh", "gelu_new", "gelu_fast", "gelu_quick", "relu", "silu_mul", "gelu_mul",
    "gelu_tanh_mul", "silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul", "mul_and_silu", "rms_norm",
    "add_rms_norm", "apply_rms_norm", "layer_norm", "add_layer_norm", "apply_rotary", "apply_rotary_transformers",
    "fused_attention", "fused_attention_dropout", "fused_attention_left_out", "fused_biased_attention",
    "fused_exported_grouped_attention", "fused_grouped_attention", "fused_written_attention", "fused_conv2d",
    "fused_max_pool2d",
    "fused_add_layer_norm", "fused_add_rms_norm", "fused_gelu_and_mul", "fused_gelu_mul", "fused_gelu_tanh_and_mul",
    "fused_exported_rotary", "fused_gelu_tanh_mul", "fused_partial_rotary", "fused_rms_norm", "fused_rotary",
    "fused_linear", "fused_linear2", "fused_linear3", "fused_linear_gelu", "fused_linear_gelu_mul",
    "fused_linear_gelu_tanh", "fused_linear_gelu_tanh_mul", "fused_linear_relu", "fused_linear_silu",
    "fused_linear_silu_mul",
    "fused_silu_and_mul", "fused_silu_mul", "linear", "linear_gelu_mul", "linear_gelu_tanh_mul", "linear_silu_mul",
]
