"""Gates: an activation of one tensor, or of one half of it, times the other. With their gradients."""

import torch
from torch.autograd.function import once_differentiable

from ._ops import ops


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


def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up."""
    return SiluMulFunction.apply(gate, up)


class GeluMulFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: torch.Tensor, up: torch.Tensor):
        ctx.save_for_backward(gate, up)
        return ops.gelu_mul(gate, up)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        gate, up = ctx.saved_tensors
        grad_gate, grad_up = ops.gelu_mul_backward(grad, gate, up)
        return grad_gate, grad_up


def gelu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gelu(gate) * up."""
    return GeluMulFunction.apply(gate, up)


class GeluTanhMulFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate: torch.Tensor, up: torch.Tensor):
        ctx.save_for_backward(gate, up)
        return ops.gelu_tanh_mul(gate, up)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        gate, up = ctx.saved_tensors
        grad_gate, grad_up = ops.gelu_tanh_mul_backward(grad, gate, up)
        return grad_gate, grad_up


def gelu_tanh_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """gelu_tanh(gate) * up."""
    return GeluTanhMulFunction.apply(gate, up)


class SiluAndMulFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.silu_and_mul(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.silu_and_mul_backward(grad, x)


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """silu(first) * second, of the halves of the last dimension."""
    return SiluAndMulFunction.apply(x)


class GeluAndMulFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu_and_mul(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_and_mul_backward(grad, x)


def gelu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """gelu(first) * second, of the halves of the last dimension."""
    return GeluAndMulFunction.apply(x)


class GeluTanhAndMulFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.gelu_tanh_and_mul(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.gelu_tanh_and_mul_backward(grad, x)


def gelu_tanh_and_mul(x: torch.Tensor) -> torch.Tensor:
    """gelu_tanh(first) * second, of the halves of the last dimension."""
    return GeluTanhAndMulFunction.apply(x)


class MulAndSiluFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor):
        ctx.save_for_backward(x)
        return ops.mul_and_silu(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: torch.Tensor):
        (x,) = ctx.saved_tensors
        return ops.mul_and_silu_backward(grad, x)


def mul_and_silu(x: torch.Tensor) -> torch.Tensor:
    """first * silu(second), of the halves of the last dimension."""
    return MulAndSiluFunction.apply(x)
