"""Linear layers whose weights have fewer bits: their rounding, done once, and the layer."""

import torch
import torch.nn.functional as F

from ._ops import ops

GROUP = 64
BLOCK = 16


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


def out_of_blocks(blocks: torch.Tensor, columns: int, steps: int, size: int) -> torch.Tensor:
    whole = columns // BLOCK * BLOCK
    first = blocks[: whole * steps * size].reshape(-1, steps, BLOCK, size).transpose(1, 2)
    last = blocks[whole * steps * size:].reshape(steps, columns - whole, size).transpose(0, 1)
    return torch.cat([first.reshape(-1, steps, size), last])


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


def dequantized(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    """values: [columns, depth], without what the operators add to them."""
    columns, groups = scales.size(0), scales.size(1)
    of_groups = out_of_blocks(scales.reshape(-1), columns, groups, 1)
    return (values.reshape(columns, groups, GROUP) * of_groups).reshape(columns, -1)


def dequantized_int8(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    bytes = out_of_blocks(values.reshape(-1), values.size(0), values.size(1) // 4, 4)
    return dequantized(bytes.float() - 128, scales)


def dequantized_int4(values: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    bytes = out_of_blocks(values.reshape(-1), values.size(0), values.size(1) // 4, 4)
    pairs = bytes.reshape(values.size(0), -1, GROUP // 2)
    return dequantized(torch.cat([pairs % 16, pairs // 16], -1).float() - 8, scales)


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
