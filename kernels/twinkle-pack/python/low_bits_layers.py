"""Linear layers with fewer bits, for inference, where an error is allowed."""

import torch
from torch import nn

from .low_bits import linear_fp8, linear_int4, linear_int8, quantize_fp8, quantize_int4, quantize_int8


class LinearInt8(nn.Module):
    weight: torch.Tensor
    weight_scales: torch.Tensor
    bias: torch.Tensor | None

    precision = "int8"
    can_torch_compile: bool = True
    has_backward: bool = False

    def prepare(self):
        values, scales = quantize_int8(self.weight)
        return {"weight": values, "weight_scales": scales}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear_int8(input, self.weight, self.weight_scales, self.bias)


class LinearInt4(nn.Module):
    weight: torch.Tensor
    weight_scales: torch.Tensor
    bias: torch.Tensor | None

    precision = "int4"
    can_torch_compile: bool = True
    has_backward: bool = False

    def prepare(self):
        values, scales = quantize_int4(self.weight)
        return {"weight": values, "weight_scales": scales}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear_int4(input, self.weight, self.weight_scales, self.bias)


class LinearFp8(nn.Module):
    weight: torch.Tensor
    weight_scales: torch.Tensor
    bias: torch.Tensor | None

    precision = "fp8"
    can_torch_compile: bool = True
    has_backward: bool = False

    def prepare(self):
        values, scales = quantize_fp8(self.weight)
        return {"weight": values, "weight_scales": scales}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear_fp8(input, self.weight, self.weight_scales, self.bias)
