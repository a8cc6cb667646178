"""What the preset "patterns" looks for: formulas as transformers and others write them. A parameter that a formula
does not use says by its default which form it is."""

import torch
import torch.nn.functional as F


def rms_norm(x, weight, eps: float, offset: float = 0.0, round_last: bool = False):
    """Llama's: rounded before the weight."""
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return weight * h.to(x.dtype)


def rms_norm_rounded_last(x, weight, eps: float, offset: float = 0.0, round_last: bool = True):
    """Olmo's: rounded after the weight."""
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return (weight * h).to(x.dtype)


def rms_norm_widened(x, weight, eps: float, offset: float = 0.0, round_last: bool = True):
    """Gemma 3n's: the weight is widened, too."""
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return (h * weight.to(torch.float32)).to(x.dtype)


def rms_norm_around_one(x, weight, eps: float, offset: float = 1.0, round_last: bool = True):
    """Gemma's: times 1 + weight."""
    h = x.to(torch.float32)
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return (h * (1.0 + weight.to(torch.float32))).to(x.dtype)


def rms_norm_t5(x, weight, eps: float, offset: float = 0.0, round_last: bool = False):
    """T5's: x itself is scaled, and rounded as the weight is."""
    variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
    return weight * (x * torch.rsqrt(variance + eps)).to(x.dtype)


def add_rms_norm(x, residual, weight, eps: float, offset: float = 0.0, round_last: bool = False):
    total = x + residual
    return rms_norm(total, weight, eps), total


def add_rms_norm_rounded_last(x, residual, weight, eps: float, offset: float = 0.0, round_last: bool = True):
    total = x + residual
    return rms_norm_rounded_last(total, weight, eps), total


def add_rms_norm_widened(x, residual, weight, eps: float, offset: float = 0.0, round_last: bool = True):
    total = x + residual
    return rms_norm_widened(total, weight, eps), total


def add_rms_norm_around_one(x, residual, weight, eps: float, offset: float = 1.0, round_last: bool = True):
    total = x + residual
    return rms_norm_around_one(total, weight, eps), total


def add_rms_norm_t5(x, residual, weight, eps: float, offset: float = 0.0, round_last: bool = False):
    total = x + residual
    return rms_norm_t5(total, weight, eps), total


def add_layer_norm(x, residual, shape: list[int], weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float):
    total = x + residual
    return F.layer_norm(total, shape, weight, bias, eps), total


def silu_mul(gate, up):
    return F.silu(gate) * up


def gelu_mul(gate, up):
    return F.gelu(gate, approximate="none") * up


def gelu_tanh_mul(gate, up):
    return F.gelu(gate, approximate="tanh") * up


def silu_and_mul(x):
    """Phi3's: gate and up are halves of one projection."""
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def gelu_and_mul(x):
    gate, up = x.chunk(2, -1)
    return F.gelu(gate, approximate="none") * up


def gelu_tanh_and_mul(x):
    gate, up = x.chunk(2, -1)
    return F.gelu(gate, approximate="tanh") * up


def gelu_new(x):
    """GPT-2's: the factor is sqrt(2 / pi)."""
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


def gelu_quick(x):
    return x * torch.sigmoid(1.702 * x)
