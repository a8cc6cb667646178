"""Activations as layers, under the names of kernels-community/activation and kernels-community/relu."""

import torch

from .activations import gelu, gelu_fast, gelu_new, gelu_quick, gelu_tanh, relu, silu
from .gates import gelu_and_mul, gelu_tanh_and_mul, mul_and_silu, silu_and_mul
from .layer import Layer


class Silu(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return silu(x)


class Gelu(Layer):
    """By the error function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu(x)


class GeluTanh(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_tanh(x)


class NewGELU(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_new(x)


class FastGELU(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_fast(x)


class QuickGELU(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_quick(x)


class ReLU(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return relu(x)


class SiluAndMul(Layer):
    """silu(first) * second, of the halves of the last dimension; so the three that follow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return silu_and_mul(x)


class MulAndSilu(Layer):
    """first * silu(second)"""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return mul_and_silu(x)


class GeluAndMul(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_and_mul(x)


class GeluTanhAndMul(Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return gelu_tanh_and_mul(x)
