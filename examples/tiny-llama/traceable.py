"""Makes a transformers decoder traceable, and gives models weights that show errors."""

import math

import torch
from torch import nn


class LogitsOnly(nn.Module):
    """Token ids in, logits out: the cache and the output class of transformers cannot be traced."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, use_cache=False, return_dict=False)[0]


def is_norm(module: nn.Module) -> bool:
    return type(module).__name__.endswith("RMSNorm")


def is_mlp(module: nn.Module) -> bool:
    return type(module).__name__.endswith("MLP")


@torch.no_grad()
def give_strong_weights(model: nn.Module, seed: int) -> None:
    """Default initial weights are so small that a broken layer hardly moves the logits."""
    generator = torch.Generator().manual_seed(seed)
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding):
            module.weight.normal_(0.0, 0.5, generator=generator)
        elif isinstance(module, nn.Linear):
            gain = 3.0 if name.endswith("lm_head") else 1.2
            module.weight.normal_(0.0, gain / math.sqrt(module.in_features), generator=generator)
            if module.bias is not None:
                module.bias.normal_(0.0, 0.2, generator=generator)
        elif is_norm(module):
            module.weight.uniform_(0.5, 1.5, generator=generator)


@torch.no_grad()
def smallest_effect(model: nn.Module, input_ids: torch.Tensor) -> tuple[float, str]:
    """The site that matters least: how far the logits move when its output is 5 % too large."""
    expected = model(input_ids)
    effects = []
    for name, module in model.named_modules():
        if is_norm(module) or is_mlp(module):
            hook = module.register_forward_hook(lambda _module, _inputs, output: output * 1.05)
            effects.append(((model(input_ids) - expected).abs().max().item(), name))
            hook.remove()
    return min(effects)


def random_tokens(batch: int, length: int, vocabulary: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocabulary, (batch, length), generator=generator)
