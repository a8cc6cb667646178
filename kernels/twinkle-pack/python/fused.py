"""What stands for formulas that are found in graphs: the operator where it takes what comes, else the formula. A graph
does not say what broadcasts."""

import torch
import torch.nn.functional as F

from .gates import gelu_and_mul, gelu_mul, gelu_tanh_and_mul, gelu_tanh_mul, silu_and_mul, silu_mul
from .norms import add_layer_norm, add_rms_norm, rms_norm


def is_row(weight: torch.Tensor, x: torch.Tensor) -> bool:
    return weight.dim() == 1 and x.dim() > 0 and weight.size(0) == x.size(-1)


def are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape


def fused_rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float, offset: float, round_last: bool) -> torch.Tensor:
    if is_row(weight, x):
        return rms_norm(x, weight, eps, offset, round_last)
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    if round_last:
        return (h * (offset + weight.to(torch.float32))).to(x.dtype)
    return weight * h.to(x.dtype)


def fused_add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float, offset: float,
                       round_last: bool) -> tuple[torch.Tensor, torch.Tensor]:
    if are_alike(x, residual) and is_row(weight, x):
        return add_rms_norm(x, residual, weight, eps, offset, round_last)
    total = x + residual
    return fused_rms_norm(total, weight, eps, offset, round_last), total


def fused_add_layer_norm(x: torch.Tensor, residual: torch.Tensor, shape: list[int], weight: torch.Tensor | None,
                         bias: torch.Tensor | None, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    if len(shape) == 1 and are_alike(x, residual):
        return add_layer_norm(x, residual, weight, bias, eps)
    total = x + residual
    return F.layer_norm(total, shape, weight, bias, eps), total


def fused_silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    if are_alike(gate, up):
        return silu_mul(gate, up)
    return F.silu(gate) * up


def fused_gelu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    if are_alike(gate, up):
        return gelu_mul(gate, up)
    return F.gelu(gate) * up


def fused_gelu_tanh_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    if are_alike(gate, up):
        return gelu_tanh_mul(gate, up)
    return F.gelu(gate, approximate="tanh") * up


def fused_silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    if x.size(-1) % 2 == 0:
        return silu_and_mul(x)
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def fused_gelu_and_mul(x: torch.Tensor) -> torch.Tensor:
    if x.size(-1) % 2 == 0:
        return gelu_and_mul(x)
    gate, up = x.chunk(2, -1)
    return F.gelu(gate) * up


def fused_gelu_tanh_and_mul(x: torch.Tensor) -> torch.Tensor:
    if x.size(-1) % 2 == 0:
        return gelu_tanh_and_mul(x)
    gate, up = x.chunk(2, -1)
    return F.gelu(gate, approximate="tanh") * up
