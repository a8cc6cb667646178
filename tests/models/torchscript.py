"""TorchScript models: what transformers, torch.jit.script and torch.jit.freeze give, and odd cases.

Decoders take token ids below 128 (inputs/tuple.pt), the others a float tensor [*, *, 64] (inputs/hidden.pt).
"""

import pathlib
from collections.abc import Callable

import torch
from inputs import HIDDEN, TOKENS
from tiny_llama.model import RMSNorm, SwiGLUMLP, TinyLlama
from tiny_llama.traceable import LogitsOnly, give_strong_weights
from torch import nn
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2Config,
                          Qwen2ForCausalLM)

SIZES = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-3,
}


class NormAndMLP(nn.Module):
    """One RMSNorm and one MLP with a residual, as in a decoder layer."""

    def __init__(self, eps: float):
        super().__init__()
        self.norm = RMSNorm(64, eps)
        self.mlp = SwiGLUMLP(64, 160)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.mlp(self.norm(x))


class TwoOfAKind(nn.Module):
    """Scripted, both norms share one class and differ in an attribute only: `when` can choose one."""

    def __init__(self):
        super().__init__()
        self.first = NormAndMLP(1e-6)
        self.second = NormAndMLP(1e-2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


class CalledTwice(nn.Module):
    """One instance called twice: a trace gives it the methods forward and forward1."""

    def __init__(self):
        super().__init__()
        self.block = NormAndMLP(1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(self.block(x))


class TwoNames(nn.Module):
    """One instance under two names: a trace makes two modules of it, and only one has the methods."""

    def __init__(self):
        super().__init__()
        self.block = NormAndMLP(1e-3)
        self.again = self.block

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.again(self.block(x))


class TwoMethods(nn.Module):
    """A method beside forward that calls the layers too."""

    def __init__(self):
        super().__init__()
        self.block = NormAndMLP(1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)

    @torch.jit.export
    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.block.norm(x)


class TakesATuple(nn.Module):
    """More than tensors in and out."""

    def __init__(self):
        super().__init__()
        self.block = NormAndMLP(1e-3)

    def forward(self, x: tuple[torch.Tensor, torch.Tensor], scale: float = 1.0) -> dict[str, torch.Tensor]:
        return {"sum": self.block(x[0]) + x[1] * scale}


class NotANorm(nn.Module):
    """Called RMSNorm in the model, but zero-centred: must not be taken for one."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(64))
        self.variance_epsilon = 1e-3

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        variance = hidden_states.float().pow(2).mean(-1, keepdim=True)
        return hidden_states * torch.rsqrt(variance + self.variance_epsilon) * (1.0 + self.weight)


class HasImpostor(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = RMSNorm(64, 1e-3)
        self.impostor = NotANorm()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.impostor(self.norm(x))


def make(folder: pathlib.Path) -> None:
    torch.set_num_threads(1)
    families: dict[str, Callable[[], nn.Module]] = {
        "mistral": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=None)),
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, tie_word_embeddings=False)),
        "llama_tied": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, tie_word_embeddings=True)),
        # The class of a SwiGLU MLP with another activation: a kernel for SiLU must not take it.
        "llama_gelu": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, hidden_act="gelu")),
    }
    for name, build in families.items():
        for dtype, suffix in ((torch.float32, ""), (torch.bfloat16, "_bfloat16")):
            model = strong(LogitsOnly(build())).to(dtype)
            save(traced(model, TOKENS), folder / f"{name}{suffix}.pt", model, TOKENS, TOKENS[:2, :7])

    float16 = strong(LogitsOnly(families["qwen2"]())).half()
    save(traced(float16, TOKENS), folder / "qwen2_float16.pt", float16, TOKENS)

    for name, model in {"two_of_a_kind": TwoOfAKind(), "called_twice": CalledTwice(), "two_names": TwoNames(),
                        "impostor": HasImpostor()}.items():
        strong(model)
        save(torch.jit.script(model), folder / f"{name}.pt", model, HIDDEN, HIDDEN[:1, :5])
        save(traced(model, HIDDEN), folder / f"{name}_traced.pt", model, HIDDEN, HIDDEN[:1, :5])
    torch.jit.script(strong(TwoMethods())).save(str(folder / "two_methods.pt"))
    torch.jit.script(strong(TakesATuple())).save(str(folder / "takes_a_tuple.pt"))

    small = strong(TinyLlama(vocabulary=128, hidden_size=64, intermediate_size=160))
    save(torch.jit.script(small), folder / "tiny_llama.pt", small, TOKENS)
    save(torch.jit.freeze(torch.jit.script(small)), folder / "frozen.pt", small, TOKENS)
    in_training = torch.jit.script(strong(TwoOfAKind()).train())
    in_training.save(str(folder / "in_training.pt"))


def strong(model: nn.Module) -> nn.Module:
    give_strong_weights(model, seed=30)
    return model.eval()


def traced(model: nn.Module, example: torch.Tensor) -> torch.jit.ScriptModule:
    return torch.jit.trace(model, (example,), check_trace=False)


def save(compiled, path: pathlib.Path, model: nn.Module, *examples: torch.Tensor) -> None:
    """Saves, and proves that the saved model still is the model, on other shapes too."""
    compiled.save(str(path))
    loaded = torch.jit.load(str(path))
    with torch.no_grad():
        for example in examples:
            expected = model(example).float()
            difference = (loaded(example).float() - expected).abs().max().item()
            if not difference <= 1e-3 * expected.abs().max().item():
                raise SystemExit(f"{path.name}: differs from the eager model by {difference}")
