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


class T5LayerNorm(nn.Module):
    """T5's: rounded to the dtype of the weight, where that is a half precision, whatever the input's is. T5 in float16
    keeps one projection in float32, and its residuals with it."""

    can_torch_compile: bool = True
    has_backward: bool = True

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = hidden_states
        if x.dtype != self.weight.dtype:
            x = x.to(torch.float32)
        return RMSNormFunction.apply(x, self.weight, self.variance_epsilon).to(self.weight.dtype)


class SwiGLUMLP(nn.Module):
    """down_proj(silu(gate_proj(x)) * up_proj(x)), with the host's own projections."""

    can_torch_compile: bool = True
    has_backward: bool = True

    gate_proj: nn.Module
    up_proj: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(SiluMulFunction.apply(self.gate_proj(x), self.up_proj(x)))


__all__ = ["RMSNorm", "T5LayerNorm", "SwiGLUMLP"]
