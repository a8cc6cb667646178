"""Linear layers as torch.nn has them."""

import torch

from .layer import Layer
from .linears import linear


class Linear(Layer):
    weight: torch.Tensor
    bias: torch.Tensor | None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return linear(input, self.weight, self.bias)
