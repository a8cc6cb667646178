import torch
from torch import nn

from .functions import RMSNormFunction, SiluMulFunction


class RMSNorm(nn.Module):
    """Llama's: the weight is applied after rounding to the dtype of the input."""

    can_torch_compile: bool = True
    has_backward: bool = True

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return RMSNormFunction.apply(hidden_states, self.weight, self.variance_epsilon)


class SwiGLUMLP(nn.Module):
    """down_proj(silu(gate_proj(x)) * up_proj(x)), with the host's own projections."""

    can_torch_compile: bool = True
    has_backward: bool = True

    gate_proj: nn.Module
    up_proj: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(SiluMulFunction.apply(self.gate_proj(x), self.up_proj(x)))


__all__ = ["RMSNorm", "SwiGLUMLP"]
