"""Layers in plain Python: a kernel without compiled code. They read what the classes they stand for have in Python,
also where a trace has lost it."""

import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        x = hidden_states.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(hidden_states.dtype)


class ZeroCentredNorm(nn.Module):
    """Gemma's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1.0 + self.weight.float())).to(x.dtype)


class GELU(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.gelu(input, approximate=self.approximate)


class NewGELU(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.gelu(input, approximate="tanh")


class SiLU(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.silu(input)


class ReLU(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.relu(input)


class Tanh(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.tanh(input)


class Linear(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        assert input.shape[-1] == self.in_features
        return F.linear(input, self.weight, self.bias)


class Conv1D(nn.Module):
    """Of transformers: a Linear with its weight transposed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size_out = x.shape[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(size_out)


class Conv1d(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Embedding(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.embedding(self.weight, input, -1, False, False)


class GatedMLP(nn.Module):
    """Of Llama and its kin, with the host's own projections and activation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Phi3MLP(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up_proj(hidden_states).chunk(2, dim=-1)
        return self.down_proj(up * F.silu(gate))


class GPT2MLP(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.c_proj(self.act(self.c_fc(hidden_states))))


class BertIntermediate(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.dense(hidden_states))


class ViTMLP(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.fc2(F.gelu(self.fc1(hidden_states)))


class T5DenseActDense(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.wo(self.dropout(torch.relu(self.wi(hidden_states))))


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos.unsqueeze(1) + torch.cat((-x[..., half:], x[..., :half]), -1) * sin.unsqueeze(1)


class Attention(nn.Module):
    """Llama's and Qwen2's. A trace flattens the tuple, and drops the cache and the weights that are returned."""

    def forward(self, hidden_states: torch.Tensor, position_embeddings: tuple[torch.Tensor, torch.Tensor],
                attention_mask: torch.Tensor | None = None, past_key_values: torch.Tensor | None = None):
        shape = [hidden_states.size(0), hidden_states.size(1), -1, self.head_dim]
        cos, sin = position_embeddings
        query = rotated(self.q_proj(hidden_states).view(shape).transpose(1, 2), cos, sin)
        key = rotated(self.k_proj(hidden_states).view(shape).transpose(1, 2), cos, sin)
        value = self.v_proj(hidden_states).view(shape).transpose(1, 2)
        groups = query.size(1) // key.size(1)
        mixed = F.scaled_dot_product_attention(query, key.repeat_interleave(groups, 1),
                                               value.repeat_interleave(groups, 1), attention_mask)
        mixed = mixed.transpose(1, 2).reshape(hidden_states.size(0), hidden_states.size(1), -1)
        return self.o_proj(mixed), None
