"""What stands for linear layers that are found in graphs: the operator where it takes what comes, else what the model
had."""

import torch
import torch.nn.functional as F

from ._ops import ops
from .linears import plain_linear


def is_layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> bool:
    """A graph does not say that a weight has two dimensions. Those of linear_prepack have four."""
    fits = x.dim() > 0 and (weight.dim() == 2 or weight.dim() == 4) and x.dtype == weight.dtype
    if bias is not None:
        fits = fits and bias.dim() == 1 and bias.dtype == x.dtype
    return fits


def are_gated(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
              up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> bool:
    return (is_layer(x, gate_weight, gate_bias) and is_layer(x, up_weight, up_bias)
            and gate_weight.size(0) == up_weight.size(0))


def fused_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not is_layer(x, weight, bias):
        return plain_linear(x, weight, bias)
    return ops.linear(x, weight, bias)


def fused_linear_silu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not is_layer(x, weight, bias):
        return F.silu(plain_linear(x, weight, bias))
    return ops.linear_silu(x, weight, bias)


def fused_linear_gelu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not is_layer(x, weight, bias):
        return F.gelu(plain_linear(x, weight, bias))
    return ops.linear_gelu(x, weight, bias)


def fused_linear_gelu_tanh(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not is_layer(x, weight, bias):
        return F.gelu(plain_linear(x, weight, bias), approximate="tanh")
    return ops.linear_gelu_tanh(x, weight, bias)


def fused_linear_relu(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not is_layer(x, weight, bias):
        return F.relu(plain_linear(x, weight, bias))
    return ops.linear_relu(x, weight, bias)


def fused_linear_silu_mul(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
                          up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not are_gated(x, gate_weight, gate_bias, up_weight, up_bias):
        return F.silu(plain_linear(x, gate_weight, gate_bias)) * plain_linear(x, up_weight, up_bias)
    return ops.linear_silu_mul(x, gate_weight, gate_bias, up_weight, up_bias)


def fused_linear_gelu_mul(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
                          up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not are_gated(x, gate_weight, gate_bias, up_weight, up_bias):
        return F.gelu(plain_linear(x, gate_weight, gate_bias)) * plain_linear(x, up_weight, up_bias)
    return ops.linear_gelu_mul(x, gate_weight, gate_bias, up_weight, up_bias)


def fused_linear_gelu_tanh_mul(x: torch.Tensor, gate_weight: torch.Tensor, gate_bias: torch.Tensor | None,
                               up_weight: torch.Tensor, up_bias: torch.Tensor | None) -> torch.Tensor:
    if torch.is_grad_enabled() or not are_gated(x, gate_weight, gate_bias, up_weight, up_bias):
        return F.gelu(plain_linear(x, gate_weight, gate_bias), approximate="tanh") * plain_linear(x, up_weight, up_bias)
    return ops.linear_gelu_tanh_mul(x, gate_weight, gate_bias, up_weight, up_bias)


def fused_linear2(x: torch.Tensor, weight1: torch.Tensor, bias1: torch.Tensor | None, weight2: torch.Tensor,
                  bias2: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    if torch.is_grad_enabled() or not (is_layer(x, weight1, bias1) and is_layer(x, weight2, bias2)):
        return plain_linear(x, weight1, bias1), plain_linear(x, weight2, bias2)
    return ops.linear2(x, weight1, bias1, weight2, bias2)


def fused_linear3(x: torch.Tensor, weight1: torch.Tensor, bias1: torch.Tensor | None, weight2: torch.Tensor,
                  bias2: torch.Tensor | None, weight3: torch.Tensor,
                  bias3: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if torch.is_grad_enabled() or not (is_layer(x, weight1, bias1) and is_layer(x, weight2, bias2)
                                       and is_layer(x, weight3, bias3)):
        return plain_linear(x, weight1, bias1), plain_linear(x, weight2, bias2), plain_linear(x, weight3, bias3)
    return ops.linear3(x, weight1, bias1, weight2, bias2, weight3, bias3)
