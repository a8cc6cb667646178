"""Operators for language models on the CPU."""

import torch

from . import layers
from .functions import RMSNormFunction, SiluMulFunction


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """x / sqrt(mean(x²) + eps) over the last dimension in float32, rounded to x's dtype, times weight."""
    return RMSNormFunction.apply(x, weight, eps)


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up."""
    return SiluMulFunction.apply(gate, up)


__all__ = ["layers", "rms_norm", "silu_mul"]
