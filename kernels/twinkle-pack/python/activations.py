"""Activations, with their gradients."""

import torch
from torch.autograd.function import once_differentiable

from ._ops import ops


class SiluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.silu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.silu_backward(grad, x)


def silu(x: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(x)."""
    return SiluFunction.apply(x)


class GeluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_backward(grad, x)


def gelu(x: torch.Tensor) -> torch.Tensor:
    """x * Φ(x), by the error function."""
    return GeluFunction.apply(x)


class GeluTanhFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu_tanh(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_tanh_backward(grad, x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """The tanh approximation of gelu, as torch computes it."""
    return GeluTanhFunction.apply(x)


class NewGeluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu_new(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_new_backward(grad, x)


def gelu_new(x: torch.Tensor) -> torch.Tensor:
    """The tanh approximation of gelu, as transformers' NewGELUActivation writes it."""
    return NewGeluFunction.apply(x)


class FastGeluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu_fast(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_fast_backward(grad, x)


def gelu_fast(x: torch.Tensor) -> torch.Tensor:
    """The tanh approximation of gelu, as transformers' FastGELUActivation writes it."""
    return FastGeluFunction.apply(x)


class QuickGeluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu_quick(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_quick_backward(grad, x)


def gelu_quick(x: torch.Tensor) -> torch.Tensor:
    """x * sigmoid(1.702 * x)."""
    return QuickGeluFunction.apply(x)


class ReluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.relu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.relu_backward(grad, x)


def relu(x: torch.Tensor) -> torch.Tensor:
    """max(x, 0)."""
    return ReluFunction.apply(x)
