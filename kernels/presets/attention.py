"""Attention that is written out. What stands for it is in written_attention.py.

`rows` and `columns` are the dimensions that transposing k swaps; the scores are multiplied by `scale` and divided by
`divisor`; `mask` is added to them, or says which of them become -inf; every head of k and v serves `group` heads of q.
"""

from typing import Optional

import torch
from torch import Tensor


def scores(q: Tensor, k: Tensor, rows: int, columns: int) -> Tensor:
    return torch.matmul(q, k.transpose(rows, columns))


def weights(scores: Tensor) -> Tensor:
    return torch.softmax(scores, -1)


def weights_by_float32(scores: Tensor, q: Tensor) -> Tensor:
    return torch.softmax(scores, -1, dtype=torch.float32).to(q.dtype)


def left_out(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(mask, float("-inf"))


def mixed(weights: Tensor, v: Tensor) -> Tensor:
    return torch.matmul(weights, v).transpose(1, 2)


def repeated(x: Tensor, group: int) -> Tensor:
    batch, heads, length, width = x.size(0), x.size(1), x.size(2), x.size(3)
    return x[:, :, None, :, :].expand(batch, heads, group, length, width).reshape(batch, heads * group, length, width)


# [patterns.grouped_attention]


def grouped_masked(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, scale: float,
                   mask: Tensor) -> Tensor:
    return mixed(weights(scores(q, repeated(k, group), rows, columns) * scale + mask), repeated(v, group))


def grouped_masked_by_float32(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, scale: float,
                              mask: Tensor) -> Tensor:
    return mixed(weights_by_float32(scores(q, repeated(k, group), rows, columns) * scale + mask, q), repeated(v, group))


def grouped(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, scale: float,
            mask: Optional[Tensor] = None) -> Tensor:
    return mixed(weights(scores(q, repeated(k, group), rows, columns) * scale), repeated(v, group))


def grouped_by_float32(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, scale: float,
                       mask: Optional[Tensor] = None) -> Tensor:
    return mixed(weights_by_float32(scores(q, repeated(k, group), rows, columns) * scale, q), repeated(v, group))


# [patterns.exported_grouped_attention]: exported models have heads and widths as numbers, and the other sizes of
# another tensor.


def repeated_by(x: Tensor, batch: int, heads: int, group: int, all_heads: int, length: int, width: int) -> Tensor:
    return x[:, :, None, :, :].expand(batch, heads, group, length, width).reshape(batch, all_heads, length, width)


def exported_masked(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, batch: int, heads: int, group: int,
                    all_heads: int, length: int, width: int, scale: float, mask: Tensor) -> Tensor:
    return mixed(weights(scores(q, repeated_by(k, batch, heads, group, all_heads, length, width), rows, columns) * scale
                         + mask), repeated_by(v, batch, heads, group, all_heads, length, width))


def exported_masked_by_float32(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, batch: int, heads: int,
                               group: int, all_heads: int, length: int, width: int, scale: float,
                               mask: Tensor) -> Tensor:
    return mixed(weights_by_float32(scores(q, repeated_by(k, batch, heads, group, all_heads, length, width), rows,
                                           columns) * scale + mask, q),
                 repeated_by(v, batch, heads, group, all_heads, length, width))


# [patterns.attention]


def masked(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float,
           divisor: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) * scale + mask), v)


def masked_by_float32(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float,
                      divisor: float = 1.0) -> Tensor:
    return mixed(weights_by_float32(scores(q, k, rows, columns) * scale + mask, q), v)


def masked_divided(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float = 1.0,
                   divisor: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) / divisor + mask), v)


def masked_unscaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float = 1.0,
                    divisor: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) + mask), v)


def scaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Optional[Tensor] = None,
           scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) * scale), v)


def scaled_by_float32(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Optional[Tensor] = None,
                      scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(weights_by_float32(scores(q, k, rows, columns) * scale, q), v)


def divided(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Optional[Tensor] = None,
            scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) / divisor), v)


def unscaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Optional[Tensor] = None,
             scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns)), v)


# [patterns.biased_attention]


def biased(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, bias: Tensor, mask: Tensor,
           scale: float) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) * scale + bias + mask), v)


def biased_by_float32(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, bias: Tensor, mask: Tensor,
                      scale: float) -> Tensor:
    return mixed(weights_by_float32(scores(q, k, rows, columns) * scale + bias + mask, q), v)


def biased_unscaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, bias: Tensor, mask: Tensor,
                    scale: float = 1.0) -> Tensor:
    return mixed(weights(scores(q, k, rows, columns) + bias + mask), v)


# [patterns.attention_left_out]


def left_out_scaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float,
                    divisor: float = 1.0) -> Tensor:
    return mixed(weights(left_out(scores(q, k, rows, columns) * scale, mask)), v)


def left_out_divided(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float = 1.0,
                     divisor: float = 1.0) -> Tensor:
    return mixed(weights(left_out(scores(q, k, rows, columns) / divisor, mask)), v)


# [patterns.attention_dropout]


def dropout_masked(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, p: float, training: bool, mask: Tensor,
                   scale: float, divisor: float = 1.0) -> Tensor:
    return mixed(torch.dropout(weights(scores(q, k, rows, columns) * scale + mask), p, training), v)


def dropout_masked_divided(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, p: float, training: bool,
                           mask: Tensor, scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(torch.dropout(weights(scores(q, k, rows, columns) / divisor + mask), p, training), v)


def dropout_scaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, p: float, training: bool,
                   mask: Optional[Tensor] = None, scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(torch.dropout(weights(scores(q, k, rows, columns) * scale), p, training), v)


def dropout_divided(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, p: float, training: bool,
                    mask: Optional[Tensor] = None, scale: float = 1.0, divisor: float = 1.0) -> Tensor:
    return mixed(torch.dropout(weights(scores(q, k, rows, columns) / divisor), p, training), v)
