"""What stands for attention that a model writes out: PyTorch's operator, where the sizes and the mask are what it takes.

The bundled pack has a copy that calls its own function of that name (package.py).

`rows` and `columns` are the dimensions that transposing k swaps; the scores are multiplied by `scale` and divided by
`divisor`; `mask` is added to them, or says which of them become -inf; every head of k and v serves `group` heads of q.
The result has its positions in front of its heads: what follows cannot depend on an order in memory that the operator
does not give.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def repeated(x: Tensor, group: int) -> Tensor:
    batch, heads, length, width = x.size(0), x.size(1), x.size(2), x.size(3)
    return x[:, :, None, :, :].expand(batch, heads, group, length, width).reshape(batch, heads * group, length, width)


def repeated_by(x: Tensor, batch: int, heads: int, group: int, all_heads: int, length: int, width: int) -> Tensor:
    return x[:, :, None, :, :].expand(batch, heads, group, length, width).reshape(batch, all_heads, length, width)


def fits(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int) -> bool:
    last = max(rows, columns)
    return (q.dim() == 4 and k.dim() == 4 and v.dim() == 4 and (last == 3 or last == -1)
            and min(rows, columns) == last - 1 and k.dtype == q.dtype and v.dtype == q.dtype and k.size(0) == q.size(0)
            and k.size(1) * group == q.size(1) and v.size(0) == k.size(0) and v.size(1) == k.size(1)
            and v.size(2) == k.size(2))


def spreads(size: int, over: int) -> bool:
    return size == 1 or size == over


# The written formula takes masks of more shapes and dtypes. With a mask, the gradients of PyTorch's operator are wrong
# (2.13, CPU) in rows that leave everything out by finite numbers, as masks of transformers do.
def takes(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, dtype: torch.dtype) -> bool:
    if q.requires_grad or k.requires_grad or v.requires_grad or mask.requires_grad:
        return False
    if mask.dtype != dtype or (mask.dim() != 2 and mask.dim() != 4):
        return False
    if not spreads(mask.size(-2), q.size(2)) or not spreads(mask.size(-1), k.size(2)):
        return False
    return mask.dim() == 2 or (spreads(mask.size(0), q.size(0)) and spreads(mask.size(1), q.size(1)))


def mixed(scores: Tensor, v: Tensor, p: float) -> Tensor:
    weights = torch.dropout(torch.softmax(scores, -1).to(v.dtype), p, True)
    return torch.matmul(weights, v).transpose(1, 2)


def as_written(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor | None, leaves_out: bool,
               scale: float, p: float) -> Tensor:
    scores = torch.matmul(q, k.transpose(rows, columns)) * scale
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf")) if leaves_out else scores + mask
    return mixed(scores, v, p)


def attend(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, mask: Tensor | None, leaves_out: bool,
           scale: float, p: float) -> Tensor:
    if (fits(q, k, v, rows, columns, group)
            and (mask is None or takes(q, k, v, mask, torch.bool if leaves_out else q.dtype))):
        kept = mask
        if mask is not None and leaves_out:
            kept = mask.logical_not()
        result = scaled_dot_product_attention(q, k, v, kept, p, False, scale=scale, enable_gqa=group > 1)
        return result.transpose(1, 2)
    if group > 1:
        k, v = repeated(k, group), repeated(v, group)
    return as_written(q, k, v, rows, columns, mask, leaves_out, scale, p)


def fused_grouped_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, group: int, scale: float,
                            mask: Tensor | None) -> Tensor:
    return attend(q, k, v, rows, columns, group, mask, False, scale, 0.0)


def fused_exported_grouped_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, batch: int, heads: int,
                                     group: int, all_heads: int, length: int, width: int, scale: float,
                                     mask: Tensor) -> Tensor:
    if (k.dim() == 4 and v.dim() == 4 and k.size(0) == batch and v.size(0) == batch and k.size(1) == heads
            and v.size(1) == heads and all_heads == heads * group and k.size(2) == length and v.size(2) == length
            and k.size(3) == width and v.size(3) == width):
        return attend(q, k, v, rows, columns, group, mask, False, scale, 0.0)
    return attend(q, repeated_by(k, batch, heads, group, all_heads, length, width),
                  repeated_by(v, batch, heads, group, all_heads, length, width), rows, columns, 1, mask, False, scale,
                  0.0)


def fused_written_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor | None,
                            scale: float, divisor: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, mask, False, scale / divisor, 0.0)


def fused_biased_attention(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, bias: Tensor, mask: Tensor,
                           scale: float) -> Tensor:
    if bias.dtype == q.dtype and mask.dtype == q.dtype:
        return attend(q, k, v, rows, columns, 1, bias + mask, False, scale, 0.0)
    # Their own sum would have other digits: that of flags is a flag.
    return mixed(torch.matmul(q, k.transpose(rows, columns)) * scale + bias + mask, v, 0.0)


def fused_attention_left_out(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, mask: Tensor, scale: float,
                             divisor: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, mask, True, scale / divisor, 0.0)


def fused_attention_dropout(q: Tensor, k: Tensor, v: Tensor, rows: int, columns: int, p: float, training: bool,
                            mask: Tensor | None, scale: float, divisor: float) -> Tensor:
    return attend(q, k, v, rows, columns, 1, mask, False, scale / divisor, p if training else 0.0)
