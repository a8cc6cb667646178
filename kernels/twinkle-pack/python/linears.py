"""Linear layers: for inference in one operator with what follows them, for training as torch has them."""

import torch
import torch.nn.functional as F

from ._ops import ops
from .gates import gelu_mul, gelu_tanh_mul, silu_mul


def plain_weight(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """In PyTorch's layout, also where linear_prepack has made it. The number of x's elements changes nothing, but makes the
    result depend on x: else freezing would compute it at once, and keep a plain copy."""
    if weight.dim() != 4:
        return weight
    depth = max(min(x.numel(), 0), weight.size(1) * weight.size(3))
    return weight.transpose(1, 2).reshape(weight.size(0) * weight.size(2), depth)


def plain_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return F.linear(x, plain_weight(weight, x), bias)


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias."""
    if torch.is_grad_enabled():
        return plain_linear(x, weight, bias)
    return ops.linear(x, weight, bias)


def linear_silu_mul(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
                    up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> torch.Tensor:
    """silu of one linear layer of x, times another."""
    if torch.is_grad_enabled():
        return silu_mul(plain_linear(x, gate_weight, gate_bias), plain_linear(x, up_weight, up_bias))
    return ops.linear_silu_mul(x, gate_weight, gate_bias, up_weight, up_bias)


def linear_gelu_mul(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
                    up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> torch.Tensor:
    """gelu of one linear layer of x, times another."""
    if torch.is_grad_enabled():
        return gelu_mul(plain_linear(x, gate_weight, gate_bias), plain_linear(x, up_weight, up_bias))
    return ops.linear_gelu_mul(x, gate_weight, gate_bias, up_weight, up_bias)


def linear_gelu_tanh_mul(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
                         up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> torch.Tensor:
    """gelu_tanh of one linear layer of x, times another."""
    if torch.is_grad_enabled():
        return gelu_tanh_mul(plain_linear(x, gate_weight, gate_bias), plain_linear(x, up_weight, up_bias))
    return ops.linear_gelu_tanh_mul(x, gate_weight, gate_bias, up_weight, up_bias)
