"""Attention that is written out, and in its place PyTorch's own operator, on every device.

`rows` and `columns` are the dimensions that transposing k swaps; the scores are multiplied by `scale` and divided by
`divisor`; `mask` is added to them, or says which of them become -inf; every head of k and v serves `group` heads of q.
The result has its positions in front of its heads: what follows cannot depend on an order in memory that the operator
does not give.
"""

from typing import Optional

import torch
import torch.nn.functional as F
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


def grouped_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, scale: float,
                      mask: Optional[Tensor]) -> Tensor:
    return attend(q, k, v, rows, columns, group, mask, False, scale, 0.0)


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


def exported_grouped_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, batch: int, heads: int,
                               group: int, all_heads: int, length: int, width: int, scale: float,
                               mask: Tensor) -> Tensor:
    if (k.dim() == 4 and v.dim() == 4 and k.size(0) == batch and v.size(0) == batch and k.size(1) == heads
            and v.size(1) == heads and all_heads == heads * group):
        return attend(q, k, v, rows, columns, group, mask, False, scale, 0.0)
    return attend(q, repeated_by(k, batch, heads, group, all_heads, length, width),
                  repeated_by(v, batch, heads, group, all_heads, length, width), rows, columns, 1, mask, False, scale,
                  0.0)


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


def attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Optional[Tensor], scale: float,
              divisor: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, mask, False, scale / divisor, 0.0)


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


def biased_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, bias: Tensor, mask: Tensor,
                     scale: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, bias + mask, False, scale, 0.0)


# [patterns.attention_left_out]


def left_out_scaled(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float,
                    divisor: float = 1.0) -> Tensor:
    return mixed(weights(left_out(scores(q, k, rows, columns) * scale, mask)), v)


def left_out_divided(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float = 1.0,
                     divisor: float = 1.0) -> Tensor:
    return mixed(weights(left_out(scores(q, k, rows, columns) / divisor, mask)), v)


def attention_left_out(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float,
                       divisor: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, mask, True, scale / divisor, 0.0)


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


def attention_dropout(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, p: float, training: bool,
                      mask: Optional[Tensor], scale: float, divisor: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, mask, False, scale / divisor, p if training else 0.0)


def fits(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int) -> bool:
    last = max(rows, columns)
    return (q.dim() == 4 and k.dim() == 4 and v.dim() == 4 and (last == 3 or last == -1)
            and min(rows, columns) == last - 1 and v.dtype == q.dtype and k.size(0) == q.size(0)
            and k.size(1) * group == q.size(1))


# The written formula takes masks of more shapes and dtypes. With a mask, the operator's gradients are wrong (PyTorch
# 2.13, CPU) in rows that leave everything out by finite numbers, as masks of transformers do.
def takes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dtype: torch.dtype) -> bool:
    if q.requires_grad or k.requires_grad or v.requires_grad or mask.requires_grad:
        return False
    if mask.dim() == 2:
        return mask.dtype == dtype and mask.size(0) <= q.size(2)
    return (mask.dim() == 4 and mask.dtype == dtype and mask.size(0) <= q.size(0) and mask.size(1) <= q.size(1)
            and mask.size(2) <= q.size(2))


def attend(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, mask: Optional[Tensor],
           leaves_out: bool, scale: float, p: float) -> Tensor:
    if (fits(q, k, v, rows, columns, group)
            and (mask is None or takes(q, k, v, mask, torch.bool if leaves_out else q.dtype))):
        kept = mask
        if mask is not None and leaves_out:
            kept = mask.logical_not()
        result = F.scaled_dot_product_attention(q, k, v, kept, p, False, scale=scale, enable_gqa=group > 1)
        return result.transpose(1, 2)
    if group > 1:
        k, v = repeated(k, group), repeated(v, group)
    all = scores(q, k, rows, columns) * scale
    if mask is not None:
        all = left_out(all, mask) if leaves_out else all + mask
    return mixed(torch.dropout(weights(all).to(v.dtype), p, True), v)
