"""Rotary position embeddings, with the gradient of what is rotated."""

import torch
from torch.autograd.function import once_differentiable

from ._ops import ops


class RotaryFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool):
        ctx.save_for_backward(cos, sin)
        ctx.interleaved = interleaved
        return ops.apply_rotary(x, cos, sin, interleaved, False)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            raise NotImplementedError("apply_rotary has no gradients of cos and sin")
        cos, sin = ctx.saved_tensors
        return ops.apply_rotary(grad, cos, sin, ctx.interleaved, True), None, None, None


def apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, interleaved: bool = False) -> torch.Tensor:
    """x * cos + rotate(x) * sin on the first cos.shape[-1] elements of each row; the rest is passed through. rotate is
    (-second, first) of the halves, or of neighbours where interleaved."""
    return RotaryFunction.apply(x, cos, sin, interleaved)


def apply_rotary_transformers(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
                              unsqueeze_dim: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """apply_rotary_pos_emb of transformers."""
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    return RotaryFunction.apply(q, cos, sin, False), RotaryFunction.apply(k, cos, sin, False)


apply_rotary_transformers.can_torch_compile = True
