"""Norms as layers. What is rounded when, and the names of the attributes, are those of the classes they stand for."""

import torch
import torch.nn.functional as F

from .layer import Layer
from .norms import add_layer_norm, add_rms_norm, layer_norm, rms_norm


class RMSNorm(Layer):
    """Llama's: the weight is applied after rounding to the dtype of the input."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.variance_epsilon)


class LlamaRMSNorm(RMSNorm):
    """The name that it has in kernels-community/layer-norm."""


class Llama4RMSNorm(Layer):
    """Llama's, where the epsilon is called eps."""

    weight: torch.Tensor
    eps: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.eps)


class OlmoRMSNorm(Layer):
    """Rounded after the weight."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.variance_epsilon, 0.0, True)


class GemmaRMSNorm(Layer):
    """Times 1 + weight, rounded after it."""

    weight: torch.Tensor
    eps: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.eps, 1.0, True)


class Gemma4RMSNorm(Layer):
    """Rounded after the weight, where there is one."""

    weight: torch.Tensor
    eps: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if hasattr(self, "weight"):
            return rms_norm(hidden_states, self.weight, self.eps, 0.0, True)
        return rms_norm(hidden_states, None, self.eps)


class WeightlessRMSNorm(Layer):
    eps: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, None, self.eps)


class TorchRMSNorm(Layer):
    """torch.nn.RMSNorm; what is no common case of it stays torch's own."""

    weight: torch.Tensor | None
    normalized_shape: list[int]
    eps: float | None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.eps is None:
            return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
        if len(self.normalized_shape) != 1:
            return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
        return rms_norm(x, self.weight, self.eps, 0.0, True).contiguous()  # as torch's


class T5LayerNorm(Layer):
    """T5's: rounded to the dtype of the weight, where that is a half precision, whatever the input's is. T5 in float16
    keeps one projection in float32, and its residuals with it."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = hidden_states
        if x.dtype != self.weight.dtype:
            x = x.to(torch.float32)
        return rms_norm(x, self.weight, self.variance_epsilon).to(self.weight.dtype)


class LayerNorm(Layer):
    """torch.nn.LayerNorm; over several dimensions it stays torch's own."""

    weight: torch.Tensor | None
    bias: torch.Tensor | None
    normalized_shape: list[int]
    eps: float

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if len(self.normalized_shape) != 1:
            return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)
        return layer_norm(input, self.weight, self.bias, self.eps)


class LayerNorm1P(Layer):
    """torch.nn.LayerNorm with weight + 1."""

    weight: torch.Tensor
    bias: torch.Tensor
    normalized_shape: list[int]
    eps: float

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if len(self.normalized_shape) != 1:
            return F.layer_norm(input, self.normalized_shape, self.weight + 1.0, self.bias, self.eps)
        return layer_norm(input, self.weight + 1.0, self.bias, self.eps)


class CohereLayerNorm(Layer):
    """Without a bias; its weight may have a dimension of heads, and is then applied by torch."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if self.weight.dim() != 1 or self.weight.dtype != hidden_states.dtype:
            normal = layer_norm(hidden_states.to(torch.float32), None, None, self.variance_epsilon)
            return (self.weight.to(torch.float32) * normal).to(hidden_states.dtype)
        return layer_norm(hidden_states, self.weight, None, self.variance_epsilon)


class OlmoLayerNorm(Layer):
    """Without weight and bias, and with an epsilon of its own."""

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return layer_norm(hidden_states, None, None, 1e-5)


class DebertaLayerNorm(Layer):
    weight: torch.Tensor
    bias: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        if hidden_states.dtype != self.weight.dtype:
            return self.weight * layer_norm(hidden_states, None, None, self.variance_epsilon) + self.bias
        return layer_norm(hidden_states, self.weight, self.bias, self.variance_epsilon)


class AddRMSNorm(Layer):
    """RMSNorm of hidden_states + residual, and that sum: the residual of what follows."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return add_rms_norm(hidden_states, residual, self.weight, self.variance_epsilon)


class AddLayerNorm(Layer):
    """LayerNorm of hidden_states + residual, and that sum."""

    weight: torch.Tensor
    bias: torch.Tensor
    eps: float

    def forward(self, hidden_states: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return add_layer_norm(hidden_states, residual, self.weight, self.bias, self.eps)
