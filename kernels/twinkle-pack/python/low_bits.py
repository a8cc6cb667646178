"""Linear layers whose weights have fewer bits: their rounding, done once, and the layer."""

import torch
import torch.nn.functional as F

from ._ops import ops

GROUP = 64


def grouped(weight: torch.Tensor) -> torch.Tensor:
    if weight.dim() != 2 or weight.size(1) % GROUP != 0:
        raise ValueError("the depth of the weight is no multiple of 64")
    return weight.float().reshape(weight.size(0), -1, GROUP)


def rounded(groups: torch.Tensor, largest: int, steps: int):
    """Integers up to `largest` and the scale of each group that has the least squared error: the one that its largest
    magnitude asks for, or a smaller one."""
    whole = groups.abs().amax(-1, keepdim=True) / largest
    best = torch.round(groups / whole.clamp(min=1e-30)).clamp(-largest, largest)
    scales = whole
    least = (groups - best * whole).square().sum(-1, keepdim=True)
    for step in range(1, steps):
        scale = whole * (1 - 0.5 * step / steps)
        values = torch.round(groups / scale.clamp(min=1e-30)).clamp(-largest, largest)
        # Where the integers are given, this scale is the best for them.
        fitted = (groups * values).sum(-1, keepdim=True) / values.square().sum(-1, keepdim=True).clamp(min=1e-30)
        error = (groups - values * fitted).square().sum(-1, keepdim=True)
        better = error < least
        best = torch.where(better, values, best)
        scales = torch.where(better, fitted, scales)
        least = torch.where(better, error, least)
    return best, scales.squeeze(-1)


def quantize_int8(weight: torch.Tensor):
    """int8 values [rows, depth] and float32 scales [rows, depth / 64]."""
    values, scales = rounded(grouped(weight), 127, 8)
    return values.to(torch.int8).reshape(weight.size(0), -1), scales.contiguous()


def quantize_int4(weight: torch.Tensor):
    """Pairs of values in bytes, uint8 [rows, depth / 2], as the operator linear_int4 has them, and their scales."""
    values, scales = rounded(grouped(weight), 7, 24)
    whole = (values + 8).to(torch.uint8)
    pairs = whole[:, :, : GROUP // 2] + whole[:, :, GROUP // 2:] * 16
    return pairs.reshape(weight.size(0), -1), scales.contiguous()


def dequantized_int8(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (values.reshape(values.size(0), -1, GROUP) * scales.unsqueeze(-1)).reshape(values.size(0), -1)


def dequantized_int4(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    pairs = values.reshape(values.size(0), -1, GROUP // 2)
    whole = torch.cat([pairs % 16, pairs // 16], -1).float() - 8
    return (whole * scales.unsqueeze(-1)).reshape(values.size(0), -1)


def linear_int8(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor,
                bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; on a CPU x is rounded to 8 bits, too."""
    if x.device.type == "cpu":
        return ops.linear_int8(x, values, scales, bias)
    return F.linear(x, dequantized_int8(values, scales).to(x.dtype), bias)


def linear_int4(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor,
                bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; on a CPU x is rounded to 8 bits, too."""
    if x.device.type == "cpu":
        return ops.linear_int4(x, values, scales, bias)
    return F.linear(x, dequantized_int4(values, scales).to(x.dtype), bias)
