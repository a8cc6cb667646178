"""Normalizations over the last dimension, with their gradients."""

import torch
from torch.autograd.function import once_differentiable

from ._ops import ops


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor | None, eps: float, offset: float, round_last: bool):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        ctx.offset = offset
        ctx.round_last = round_last
        return ops.rms_norm(x, weight, eps, offset, round_last)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        x, weight = ctx.saved_tensors
        grad_x, grad_weight = ops.rms_norm_backward(grad, x, weight, ctx.eps, ctx.offset, ctx.round_last)
        return grad_x, None if weight is None else grad_weight, None, None, None


class AddRMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, eps: float, offset: float,
                round_last: bool):
        normalized, total = ops.add_rms_norm(x, residual, weight, eps, offset, round_last)
        ctx.save_for_backward(total, weight)
        ctx.eps = eps
        ctx.offset = offset
        ctx.round_last = round_last
        return normalized, total

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor, grad_total: torch.Tensor):
        total, weight = ctx.saved_tensors
        grad_x, grad_weight = ops.rms_norm_backward(grad, total, weight, ctx.eps, ctx.offset, ctx.round_last)
        grad_x = grad_x + grad_total
        return grad_x, grad_x, None if weight is None else grad_weight, None, None, None


class LayerNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float):
        ctx.save_for_backward(x, weight, bias)
        ctx.eps = eps
        return ops.layer_norm(x, weight, bias, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        x, weight, bias = ctx.saved_tensors
        grad_x, grad_weight, grad_bias = ops.layer_norm_backward(grad, x, weight, ctx.eps)
        if weight is None and bias is not None:
            grad_bias = grad.reshape(-1, grad.shape[-1]).sum(0)
        return grad_x, None if weight is None else grad_weight, None if bias is None else grad_bias, None


class AddLayerNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
                eps: float):
        normalized, total = ops.add_layer_norm(x, residual, weight, bias, eps)
        ctx.save_for_backward(total, weight, bias)
        ctx.eps = eps
        return normalized, total

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor, grad_total: torch.Tensor):
        total, weight, bias = ctx.saved_tensors
        grad_x, grad_weight, grad_bias = ops.layer_norm_backward(grad, total, weight, ctx.eps)
        grad_x = grad_x + grad_total
        if weight is None and bias is not None:
            grad_bias = grad.reshape(-1, grad.shape[-1]).sum(0)
        return grad_x, grad_x, None if weight is None else grad_weight, None if bias is None else grad_bias, None


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float = 1e-6, offset: float = 0.0,
             round_last: bool = False) -> torch.Tensor:
    """x / sqrt(mean(x²) + eps) in float32, times offset + weight; rounded to x's dtype before that product (Llama), or
    after it (round_last: Olmo; with an offset of 1, Gemma)."""
    return RMSNormFunction.apply(x, weight, eps, offset, round_last)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, eps: float = 1e-6,
                 offset: float = 0.0, round_last: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """rms_norm of x + residual, and x + residual."""
    return AddRMSNormFunction.apply(x, residual, weight, eps, offset, round_last)


def apply_rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """rms_norm under the name that it has in kernels-community/rmsnorm."""
    return RMSNormFunction.apply(input, weight, eps, 0.0, False)


def layer_norm(x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
               eps: float = 1e-5) -> torch.Tensor:
    """(x - mean(x)) / sqrt(var(x) + eps) * weight + bias, in float32, rounded once."""
    return LayerNormFunction.apply(x, weight, bias, eps)


def add_layer_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None,
                   eps: float = 1e-5) -> tuple[torch.Tensor, torch.Tensor]:
    """layer_norm of x + residual, and x + residual."""
    return AddLayerNormFunction.apply(x, residual, weight, bias, eps)
