"""What stands for convolutions of two dimensions that are found in graphs, with what follows them: the operator where it
takes what comes, else what the model had."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ._ops import ops


def code_of(activation: str) -> int:
    """What the operator calls it."""
    if activation == "relu":
        return 1
    if activation == "relu6":
        return 2
    if activation == "silu":
        return 3
    if activation == "gelu":
        return 4
    if activation == "hardswish":
        return 5
    return 0


def activated(x: Tensor, activation: str) -> Tensor:
    if activation == "relu":
        return F.relu(x)
    if activation == "relu6":
        return F.relu6(x)
    if activation == "silu":
        return F.silu(x)
    if activation == "gelu":
        return F.gelu(x)
    if activation == "hardswish":
        return F.hardswish(x)
    return x


def laid_out(y: Tensor, weight: Tensor, layout: int) -> Tensor:
    """Contiguous, if `layout` says so, but for weights whose channels lie last: PyTorch's result follows them."""
    if layout == 2 and weight.stride(2) <= weight.stride(1):
        return y.contiguous()
    return y


def plain_weight(weight: Tensor, channels: int) -> Tensor:
    """In PyTorch's layout, also where conv2d_prepack has made it. The number of x's channels changes nothing, but makes the
    result depend on x: else freezing would compute it at once, and keep a plain copy."""
    if weight.dim() == 4:
        return weight
    inputs = max(min(channels, 0), weight.size(0) * weight.size(4) * weight.size(6))
    return weight.permute(1, 5, 0, 4, 6, 2, 3).reshape(weight.size(1) * weight.size(5), inputs, weight.size(2),
                                                      weight.size(3))


def fused_conv2d(x: Tensor, weight: Tensor, bias: Tensor | None, stride: list[int], padding: list[int],
                 dilation: list[int], groups: int, residual: Tensor | None, activation: str, residual_last: bool,
                 mean: Tensor | None, variance: Tensor | None, gain: Tensor | None, offset: Tensor | None,
                 eps: float, layout: int) -> Tensor:
    """`layout`: 0 as x or the weight is, as PyTorch's; 1 channels last; 2 as the weight is. The weight may be one that
    conv2d_prepack has made."""
    if len(stride) == 2 and len(padding) == 2 and len(dilation) == 2 and not torch.is_grad_enabled():
        fused = ops.conv2d(x, weight, bias, mean, variance, gain, offset, eps, residual, residual_last, stride[0],
                           stride[1], padding[0], padding[1], dilation[0], dilation[1], groups, code_of(activation),
                           layout == 1)
        if fused is not None:
            return laid_out(fused, weight, layout)
    if layout == 1 and x.dim() == 4:  # PyTorch's is faster so, too
        x = x.contiguous(memory_format=torch.channels_last)
    y = F.conv2d(x, plain_weight(weight, x.size(-3)), bias, stride, padding, dilation, groups)
    if mean is not None and variance is not None:
        y = torch.batch_norm(y, gain, offset, mean, variance, False, 0.1, eps, False)
    if residual is None:
        y = activated(y, activation)
    elif residual_last:
        y = activated(y, activation) + residual
    else:
        y = activated(y + residual, activation)
    return laid_out(y, weight, layout)


def fused_max_pool2d(x: Tensor, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int],
                     ceil_mode: bool) -> Tensor:
    if len(kernel) == 2 and len(stride) == 2 and len(padding) == 2 and len(dilation) == 2 and not torch.is_grad_enabled():
        pooled = ops.max_pool2d(x, kernel[0], kernel[1], stride[0], stride[1], padding[0], padding[1], dilation[0],
                                dilation[1], ceil_mode)
        if pooled is not None:
            return pooled
    return torch.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode)
