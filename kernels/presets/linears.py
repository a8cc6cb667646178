"""What the preset "linear" looks for: linear layers of one input, and what follows them."""

import torch
import torch.nn.functional as F


def three(x, weight1, bias1: torch.Tensor | None, weight2, bias2: torch.Tensor | None, weight3,
          bias3: torch.Tensor | None):
    return F.linear(x, weight1, bias1), F.linear(x, weight2, bias2), F.linear(x, weight3, bias3)


def two(x, weight1, bias1: torch.Tensor | None, weight2, bias2: torch.Tensor | None):
    return F.linear(x, weight1, bias1), F.linear(x, weight2, bias2)


def silu_gate(x, gate_weight, gate_bias: torch.Tensor | None, up_weight, up_bias: torch.Tensor | None):
    return F.silu(F.linear(x, gate_weight, gate_bias)) * F.linear(x, up_weight, up_bias)


def gelu_gate(x, gate_weight, gate_bias: torch.Tensor | None, up_weight, up_bias: torch.Tensor | None):
    return F.gelu(F.linear(x, gate_weight, gate_bias)) * F.linear(x, up_weight, up_bias)


def gelu_tanh_gate(x, gate_weight, gate_bias: torch.Tensor | None, up_weight, up_bias: torch.Tensor | None):
    return F.gelu(F.linear(x, gate_weight, gate_bias), approximate="tanh") * F.linear(x, up_weight, up_bias)


def silu(x, weight, bias: torch.Tensor | None):
    return F.silu(F.linear(x, weight, bias))


def gelu(x, weight, bias: torch.Tensor | None):
    return F.gelu(F.linear(x, weight, bias))


def gelu_tanh(x, weight, bias: torch.Tensor | None):
    return F.gelu(F.linear(x, weight, bias), approximate="tanh")


def relu(x, weight, bias: torch.Tensor | None):
    return F.relu(F.linear(x, weight, bias))


def linear(x, weight, bias: torch.Tensor | None):
    return F.linear(x, weight, bias)
