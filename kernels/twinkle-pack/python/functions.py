"""The operators with their gradients, for training."""

import torch
from torch.autograd.function import once_differentiable

from ._ops import ops


class RMSNormFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, eps: float):
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return ops.rms_norm(x, weight, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        x, weight = ctx.saved_tensors
        grad_x, grad_weight = ops.rms_norm_backward(grad, x, weight, ctx.eps)
        return grad_x, grad_weight, None


class SiluMulFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: torch.Tensor, up: torch.Tensor):
        ctx.save_for_backward(gate, up)
        return ops.silu_mul(gate, up)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        gate, up = ctx.saved_tensors
        grad_gate, grad_up = ops.silu_mul_backward(grad, gate, up)
        return grad_gate, grad_up
