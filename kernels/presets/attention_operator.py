"""PyTorch's own operator for attention. What is written out is in attention.py."""

from typing import Optional

import torch.nn.functional as F
from torch import Tensor


def operator(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor], dropout: float, causal: bool,
             scale: Optional[float], grouped: bool) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale=scale, enable_gqa=grouped)
