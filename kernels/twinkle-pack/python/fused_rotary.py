"""What stands for rotary embeddings that are found in graphs: the operator where it takes what comes, else the formula.
A graph counts dimensions from the end, which is rank 0, or says which one of a tensor of that rank is the last."""

import torch

from .rotary import apply_rotary


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, dim: int, interleaved: bool) -> torch.Tensor:
    """The formula, on tensors of every shape and dtype."""
    if interleaved:
        first, second = torch.ops.aten.slice(x, dim, 0, None, 2), torch.ops.aten.slice(x, dim, 1, None, 2)
        return x * cos + torch.stack((-second, first), -1).flatten(-2) * sin
    middle = x.size(dim) // 2
    first, second = torch.ops.aten.slice(x, dim, 0, middle), torch.ops.aten.slice(x, dim, middle)
    return x * cos + torch.cat((-second, first), -1) * sin


def takes_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, width: int, rank: int) -> bool:
    """Whether apply_rotary computes the formula, which has more shapes, dtypes and gradients."""
    missing = x.dim() - cos.dim()
    if missing < 0 or (rank != 0 and rank != x.dim()) or cos.shape != sin.shape or cos.dtype != sin.dtype:
        return False
    if cos.size(-1) != width or width % 2 != 0 or width > x.size(-1) or cos.requires_grad or sin.requires_grad:
        return False
    for i in range(cos.dim() - 1):
        if cos.size(i) > x.size(missing + i):
            return False
    return x.is_floating_point() and cos.is_floating_point()


def fused_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, rank: int, interleaved: bool) -> torch.Tensor:
    if takes_rotary(x, cos, sin, x.size(-1), rank):
        return apply_rotary(x, cos, sin, interleaved)
    return rotated(x, cos, sin, rank - 1, interleaved)


def fused_exported_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, middle: int,
                          rank: int) -> torch.Tensor:
    if 2 * middle == x.size(-1) and takes_rotary(x, cos, sin, x.size(-1), rank):
        return apply_rotary(x, cos, sin, False)
    first, second = torch.ops.aten.slice(x, rank - 1, 0, middle), torch.ops.aten.slice(x, rank - 1, middle)
    return x * cos + torch.cat((-second, first), -1) * sin


def fused_partial_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, width: int, rank: int,
                         interleaved: bool) -> torch.Tensor:
    if takes_rotary(x, cos, sin, width, rank):
        return apply_rotary(x, cos, sin, interleaved).contiguous()  # as cat gives it
    first, rest = torch.ops.aten.slice(x, rank - 1, 0, width), torch.ops.aten.slice(x, rank - 1, width)
    return torch.cat((rotated(first, cos, sin, rank - 1, interleaved), rest), -1)
