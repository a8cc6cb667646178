"""What stands for scaled dot product attention in graphs: the operator where it takes what comes, else PyTorch's."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ._ops import ops


def fused_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, causal: bool,
                    scale: float | None, grouped: bool) -> Tensor:
    # Without elements there is no factor.
    if dropout == 0.0 and query.dim() == 4 and query.size(3) > 0 and not torch.is_grad_enabled():
        factor = query.size(3) ** -0.5 if scale is None else scale
        attended = ops.attention(query, key, value, mask, factor, causal, grouped)
        if attended is not None:
            return attended
    return F.scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)


# With the names of PyTorch's arguments.
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float,
                                 is_causal: bool, scale: float | None, enable_gqa: bool) -> Tensor:
    return fused_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
