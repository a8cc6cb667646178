"""Operators for language models on the CPU."""

import torch

from . import layers
from ._ops import ops


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(mean(x²) + eps) over the last dimension in float32, rounded to x's dtype, times weight."""
    return ops.rms_norm(x, weight, eps)


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up."""
    return ops.silu_mul(gate, up)


__all__ = ["layers", "rms_norm", "silu_mul"]
