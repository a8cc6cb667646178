"""Linear layers with fewer bits, in plain Python: weights with a scale for each row."""

import torch
import torch.nn.functional as F
from torch import nn


def rounded(weight: torch.Tensor, largest: float):
    scales = weight.float().abs().amax(1, keepdim=True) / largest
    values = torch.round(weight.float() / scales.clamp(min=1e-30))
    return values.clamp(-largest, largest).to(torch.int8), scales


class LinearInt8(nn.Module):
    weight: torch.Tensor
    weight_scales: torch.Tensor
    bias: torch.Tensor | None
    precision = "int8"

    def prepare(self):
        values, scales = rounded(self.weight, 127.0)
        return {"weight": values, "weight_scales": scales}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        weight = (self.weight.float() * self.weight_scales).to(input.dtype)
        return F.linear(input, weight, self.bias)


class LinearInt4(nn.Module):
    """Two values in a byte."""

    weight: torch.Tensor
    weight_scales: torch.Tensor
    bias: torch.Tensor | None
    precision = "int4"

    def prepare(self):
        values, scales = rounded(self.weight, 7.0)
        pairs = (values + 8).to(torch.uint8).reshape(values.size(0), -1, 2)
        return {"weight": pairs[:, :, 0] + 16 * pairs[:, :, 1], "weight_scales": scales}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pairs = torch.stack([self.weight % 16, self.weight // 16], -1)
        weight = (pairs.reshape(pairs.size(0), -1).float() - 8) * self.weight_scales
        return F.linear(input, weight.to(input.dtype), self.bias)


class LinearExact(nn.Module):
    """The transposed weight, which is as exact."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def prepare(self):
        return {"weight": self.weight.t().contiguous()}

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.linear(input, self.weight.t(), self.bias)
