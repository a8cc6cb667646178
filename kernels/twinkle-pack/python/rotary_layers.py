import torch

from .layer import Layer
from .rotary import apply_rotary_transformers as rotate


class apply_rotary_transformers(Layer):
    """The function as a layer, under the name of kernels-community/rotary."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
                unsqueeze_dim: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
        return rotate(q, k, cos, sin, unsqueeze_dim)
