"""Linear layers whose weights have fewer bits: their rounding, done once, and the layer."""

import torch

from ._ops import ops

GROUP = 64
BLOCK = 16
FP8_LARGEST = 448.0


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


def in_blocks(rows: torch.Tensor) -> torch.Tensor:
    """[columns, steps, size] in the operators' order: of 16 columns the first step of each, then the next."""
    whole = rows.size(0) // BLOCK * BLOCK
    blocks = rows[:whole].reshape(-1, BLOCK, rows.size(1), rows.size(2)).transpose(1, 2)
    return torch.cat([blocks.reshape(-1), rows[whole:].transpose(0, 1).reshape(-1)])


def scales_in_blocks(scales: torch.Tensor) -> torch.Tensor:
    return in_blocks(scales.unsqueeze(-1)).reshape(scales.size(0), -1)


def quantize_int8(weight: torch.Tensor):
    """What the operator linear_int8 takes: values, uint8 [columns, depth], and scales, float32 [columns, depth / 64]."""
    values, scales = rounded(grouped(weight), 127, 8)
    bytes = (values + 128).to(torch.uint8).reshape(weight.size(0), -1, 4)
    return in_blocks(bytes).reshape(weight.size(0), -1), scales_in_blocks(scales)


def quantize_int4(weight: torch.Tensor):
    """What the operator linear_int4 takes: values, uint8 [columns, depth / 2], and scales as above."""
    values, scales = rounded(grouped(weight), 7, 24)
    whole = (values + 8).to(torch.uint8)
    pairs = whole[:, :, : GROUP // 2] + whole[:, :, GROUP // 2:] * 16
    return in_blocks(pairs.reshape(weight.size(0), -1, 4)).reshape(weight.size(0), -1), scales_in_blocks(scales)


def quantize_fp8(weight: torch.Tensor):
    """What the operator linear_fp8 takes: values, float8_e4m3fn [columns, depth], and scales, float32 [columns, 1]."""
    rows = weight.float()
    scales = rows.abs().amax(-1, keepdim=True) / FP8_LARGEST
    values = (rows / torch.where(scales == 0, torch.ones_like(scales), scales)).clamp(-FP8_LARGEST, FP8_LARGEST)
    return values.to(torch.float8_e4m3fn), scales


def linear_int8(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor,
                bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; on a CPU x is rounded to 8 bits, too."""
    return ops.linear_int8(x, values, scales, bias)


def linear_int4(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor,
                bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; on a CPU x is rounded to 8 bits, too."""
    return ops.linear_int4(x, values, scales, bias)


def linear_fp8(x: torch.Tensor, values: torch.Tensor, scales: torch.Tensor,
               bias: torch.Tensor | None = None) -> torch.Tensor:
    """x weight^T + bias; more than 32 rows of x on a GPU are rounded to 8 bits, too, each with a scale of its own."""
    return ops.linear_fp8(x, values, scales, bias)
