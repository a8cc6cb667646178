"""Gated MLPs as layers: with the host's own projections, and one operator between them. Their activation is part of
their name, so that a binding must look at the host's."""

import torch
from torch import nn

from .gates import gelu_and_mul, gelu_mul, gelu_tanh_mul, mul_and_silu, silu_and_mul, silu_mul
from .layer import Layer
from .linears import linear_gelu_mul, linear_gelu_tanh_mul, linear_silu_mul


class SwiGLUMLP(Layer):
    """down_proj(silu(gate_proj(x)) * up_proj(x))"""

    gate_proj: nn.Module
    up_proj: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.gate_proj, nn.Linear) and isinstance(self.up_proj, nn.Linear):
            gated = linear_silu_mul(x, self.gate_proj.weight, self.gate_proj.bias,
                                    self.up_proj.weight, self.up_proj.bias)
        else:
            gated = silu_mul(self.gate_proj(x), self.up_proj(x))
        return self.down_proj(gated)


class GeGLUMLP(Layer):
    """With the tanh approximation of gelu, as in kernels-community/liger-kernels."""

    gate_proj: nn.Module
    up_proj: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.gate_proj, nn.Linear) and isinstance(self.up_proj, nn.Linear):
            gated = linear_gelu_tanh_mul(x, self.gate_proj.weight, self.gate_proj.bias,
                                         self.up_proj.weight, self.up_proj.bias)
        else:
            gated = gelu_tanh_mul(self.gate_proj(x), self.up_proj(x))
        return self.down_proj(gated)


class GeGLUErfMLP(Layer):
    """With gelu by the error function."""

    gate_proj: nn.Module
    up_proj: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.gate_proj, nn.Linear) and isinstance(self.up_proj, nn.Linear):
            gated = linear_gelu_mul(x, self.gate_proj.weight, self.gate_proj.bias,
                                    self.up_proj.weight, self.up_proj.bias)
        else:
            gated = gelu_mul(self.gate_proj(x), self.up_proj(x))
        return self.down_proj(gated)


class Phi3MLP(Layer):
    """SwiGLU with one projection for gate and up."""

    gate_up_proj: nn.Module
    down_proj: nn.Module

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.down_proj(silu_and_mul(self.gate_up_proj(hidden_states)))


class GraniteMoeMLP(Layer):
    input_linear: nn.Module
    output_linear: nn.Module

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.output_linear(silu_and_mul(self.input_linear(hidden_states)))


class MoonshineMLP(Layer):
    """The gate is the second half."""

    fc1: nn.Module
    fc2: nn.Module

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.fc2(mul_and_silu(self.fc1(hidden_states)))


class Lfm2MLP(Layer):
    w1: nn.Module
    w2: nn.Module
    w3: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.w1, nn.Linear) and isinstance(self.w3, nn.Linear):
            gated = linear_silu_mul(x, self.w1.weight, self.w1.bias,
                                    self.w3.weight, self.w3.bias)
        else:
            gated = silu_mul(self.w1(x), self.w3(x))
        return self.w2(gated)


class ModernBertMLP(Layer):
    """Gelu by the error function, and the host's dropout in front of the last projection."""

    Wi: nn.Module
    drop: nn.Module
    Wo: nn.Module

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.Wo(self.drop(gelu_and_mul(self.Wi(hidden_states))))


class GteMLP(Layer):
    """GeGLUErfMLP with the host's dropout."""

    gate_proj: nn.Module
    up_proj: nn.Module
    dropout: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.gate_proj, nn.Linear) and isinstance(self.up_proj, nn.Linear):
            gated = linear_gelu_mul(x, self.gate_proj.weight, self.gate_proj.bias,
                                    self.up_proj.weight, self.up_proj.bias)
        else:
            gated = gelu_mul(self.gate_proj(x), self.up_proj(x))
        return self.down_proj(self.dropout(gated))


class T5GemmaMLP(Layer):
    """GeGLUMLP with the host's dropout."""

    gate_proj: nn.Module
    up_proj: nn.Module
    dropout: nn.Module
    down_proj: nn.Module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if isinstance(self.gate_proj, nn.Linear) and isinstance(self.up_proj, nn.Linear):
            gated = linear_gelu_tanh_mul(x, self.gate_proj.weight, self.gate_proj.bias,
                                         self.up_proj.weight, self.up_proj.bias)
        else:
            gated = gelu_tanh_mul(self.gate_proj(x), self.up_proj(x))
        return self.down_proj(self.dropout(gated))


class T5DenseGatedActDense(Layer):
    """With the tanh approximation of gelu. The last projection may have a dtype of its own: float32 in a T5 of halves,
    or int8, which takes what comes."""

    wi_0: nn.Module
    wi_1: nn.Module
    dropout: nn.Module
    wo: nn.Module

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden = self.dropout(gelu_tanh_mul(self.wi_0(hidden_states), self.wi_1(hidden_states)))
        dtype = self.wo.weight.dtype
        if hidden.dtype != dtype and dtype != torch.int8:
            hidden = hidden.to(dtype)
        return self.wo(hidden)
