"""Rotary position embeddings that are written out, of one tensor: x * cos + rotate(x) * sin.

They rotate all of the last dimension, or its first `width` elements. A trace calls that dimension 3: of a tensor of
`rank` 4. Where it is called the last one, `rank` is 0.
"""

import torch
from torch import Tensor


def halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    middle = x.size(-1) // 2
    return x * cos + torch.cat((-x[..., middle:], x[..., :middle]), -1) * sin


def halves4(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    middle = x.size(3) // 2
    return x * cos + torch.cat((-x[:, :, :, middle:], x[:, :, :, :middle]), -1) * sin


def pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2) * sin


def pairs4(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return x * cos + torch.stack((-x[:, :, :, 1::2], x[:, :, :, ::2]), -1).flatten(-2) * sin


# [patterns.rotary]


def half(x: Tensor, cos: Tensor, sin: Tensor, rank: int = 0, interleaved: bool = False) -> Tensor:
    return halves(x, cos, sin)


def half4(x: Tensor, cos: Tensor, sin: Tensor, rank: int = 4, interleaved: bool = False) -> Tensor:
    return halves4(x, cos, sin)


def interleaved(x: Tensor, cos: Tensor, sin: Tensor, rank: int = 0, interleaved: bool = True) -> Tensor:
    return pairs(x, cos, sin)


def interleaved4(x: Tensor, cos: Tensor, sin: Tensor, rank: int = 4, interleaved: bool = True) -> Tensor:
    return pairs4(x, cos, sin)


# [patterns.exported_rotary]: exported models have the half of the dimension as a number.


def exported_half(x: Tensor, cos: Tensor, sin: Tensor, middle: int, rank: int = 0) -> Tensor:
    return x * cos + torch.cat((-x[..., middle:], x[..., :middle]), -1) * sin


def exported_half4(x: Tensor, cos: Tensor, sin: Tensor, middle: int, rank: int = 4) -> Tensor:
    return x * cos + torch.cat((-x[:, :, :, middle:], x[:, :, :, :middle]), -1) * sin


# [patterns.partial_rotary]


def partial_half(x: Tensor, cos: Tensor, sin: Tensor, width: int, rank: int = 0, interleaved: bool = False) -> Tensor:
    return torch.cat((halves(x[..., :width], cos, sin), x[..., width:]), -1)


def partial_half4(x: Tensor, cos: Tensor, sin: Tensor, width: int, rank: int = 4, interleaved: bool = False) -> Tensor:
    return torch.cat((halves4(x[:, :, :, :width], cos, sin), x[:, :, :, width:]), -1)


def partial_interleaved(x: Tensor, cos: Tensor, sin: Tensor, width: int, rank: int = 0,
                        interleaved: bool = True) -> Tensor:
    return torch.cat((pairs(x[..., :width], cos, sin), x[..., width:]), -1)


def partial_interleaved4(x: Tensor, cos: Tensor, sin: Tensor, width: int, rank: int = 4,
                         interleaved: bool = True) -> Tensor:
    return torch.cat((pairs4(x[:, :, :, :width], cos, sin), x[:, :, :, width:]), -1)
