"""What the preset "convolutions" looks for: convolutions of two dimensions, and what follows them; NAME is without batch
normalization, norm_NAME with it. And pooling."""

import torch
import torch.nn.functional as F
from torch import Tensor


def conv(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int], groups: int):
    return torch.conv2d(x, weight, bias, stride, padding, dilation, groups)


def normalized(x, mean: Tensor | None, variance: Tensor | None, gain: Tensor | None, offset: Tensor | None, eps: float):
    return torch.batch_norm(x, gain, offset, mean, variance, False, 0.1, eps, False)


def norm_silu_add(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                  groups: int, residual: Tensor, activation: str = "silu", residual_last: bool = True,
                  mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
                  offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.silu(y) + residual


def silu_add(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
             groups: int, residual: Tensor, activation: str = "silu", residual_last: bool = True,
             mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
             offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.silu(y) + residual


def norm_add_relu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                  groups: int, residual: Tensor, activation: str = "relu", residual_last: bool = False,
                  mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
                  offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.relu(y + residual)


def add_relu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
             groups: int, residual: Tensor, activation: str = "relu", residual_last: bool = False,
             mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
             offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.relu(y + residual)


def norm_relu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
              groups: int, residual: Tensor | None = None, activation: str = "relu", residual_last: bool = False,
              mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
              offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.relu(y)


def relu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
         groups: int, residual: Tensor | None = None, activation: str = "relu", residual_last: bool = False,
         mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
         offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.relu(y)


def norm_relu6(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
               groups: int, residual: Tensor | None = None, activation: str = "relu6", residual_last: bool = False,
               mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
               offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.relu6(y)


def relu6(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
          groups: int, residual: Tensor | None = None, activation: str = "relu6", residual_last: bool = False,
          mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
          offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.relu6(y)


def norm_silu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
              groups: int, residual: Tensor | None = None, activation: str = "silu", residual_last: bool = False,
              mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
              offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.silu(y)


def silu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
         groups: int, residual: Tensor | None = None, activation: str = "silu", residual_last: bool = False,
         mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
         offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.silu(y)


def norm_gelu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
              groups: int, residual: Tensor | None = None, activation: str = "gelu", residual_last: bool = False,
              mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
              offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.gelu(y)


def gelu(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
         groups: int, residual: Tensor | None = None, activation: str = "gelu", residual_last: bool = False,
         mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
         offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.gelu(y)


def norm_hardswish(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
                   groups: int, residual: Tensor | None = None, activation: str = "hardswish", residual_last: bool = False,
                   mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
                   offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return F.hardswish(y)


def hardswish(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
              groups: int, residual: Tensor | None = None, activation: str = "hardswish", residual_last: bool = False,
              mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
              offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return F.hardswish(y)


def norm_add(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
             groups: int, residual: Tensor, activation: str = "none", residual_last: bool = False,
             mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
             offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return y + residual


def add(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
        groups: int, residual: Tensor, activation: str = "none", residual_last: bool = False,
        mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
        offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return y + residual


def norm(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
         groups: int, residual: Tensor | None = None, activation: str = "none", residual_last: bool = False,
         mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
         offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = normalized(conv(x, weight, bias, stride, padding, dilation, groups), mean, variance, gain, offset, eps)
    return y


def alone(x, weight, bias: Tensor | None, stride: list[int], padding: list[int], dilation: list[int],
          groups: int, residual: Tensor | None = None, activation: str = "none", residual_last: bool = False,
          mean: Tensor | None = None, variance: Tensor | None = None, gain: Tensor | None = None,
          offset: Tensor | None = None, eps: float = 0.0, layout: int = 0):
    y = conv(x, weight, bias, stride, padding, dilation, groups)
    return y


def max_pool(x, kernel: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil_mode: bool):
    return torch.max_pool2d(x, kernel, stride, padding, dilation, ceil_mode)
