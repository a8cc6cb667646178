"""The models of model_bench.py and the benches on GPUs. Needs torch and transformers.

    models.py make MODEL DTYPE FILE [DEVICE]          traced and saved
    models.py exact MODEL DTYPE FILE SIZE…            a model that knows the results in double precision, for these sizes
    models.py small MODEL LAYERS FOLDER               narrow ones for pattern_bench.py: MODEL,LAYERS,FORM.pt

A size is a number of tokens, of images or of recordings. MODEL-eager: with attention written out, as transformers does by
attn_implementation="eager"; MODEL-causal: with the operator, told that it is causal instead of given a mask (the trace of
transformers' own makes one).
"""

import os
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers as hf  # noqa: E402
from torch import nn  # noqa: E402

import vision_models  # noqa: E402

VOCABULARY = 1000


class FirstOutput(nn.Module):
    """Tensors in, the first output out: the dictionaries of transformers cannot be traced."""

    def __init__(self, model: nn.Module, **arguments):
        super().__init__()
        self.model, self.arguments = model, arguments

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids, return_dict=False, **self.arguments)[0]


def llama() -> nn.Module:
    return FirstOutput(hf.LlamaForCausalLM(hf.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16,
        tie_word_embeddings=False)), use_cache=False)


def wide() -> nn.Module:
    return FirstOutput(hf.LlamaForCausalLM(hf.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=2048, intermediate_size=5632, num_hidden_layers=4, num_attention_heads=32,
        tie_word_embeddings=False)), use_cache=False)


def large() -> nn.Module:
    """A few layers of a model that needs a GPU."""
    return FirstOutput(hf.LlamaForCausalLM(hf.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=4096, intermediate_size=12288, num_hidden_layers=8, num_attention_heads=32,
        max_position_embeddings=8192, tie_word_embeddings=False)), use_cache=False)


def qwen2() -> nn.Module:
    """The widths of Qwen2-7B."""
    return FirstOutput(hf.Qwen2ForCausalLM(hf.Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=3584, intermediate_size=18944, num_hidden_layers=4, num_attention_heads=28,
        num_key_value_heads=4, max_position_embeddings=8192, tie_word_embeddings=False)), use_cache=False)


def qwen2_small() -> nn.Module:
    """The widths of Qwen2-0.5B."""
    return FirstOutput(hf.Qwen2ForCausalLM(hf.Qwen2Config(
        vocab_size=VOCABULARY, hidden_size=896, intermediate_size=4864, num_hidden_layers=8, num_attention_heads=14,
        num_key_value_heads=2, tie_word_embeddings=False)), use_cache=False)


def qwen3() -> nn.Module:
    """The widths of Qwen3-8B."""
    return FirstOutput(hf.Qwen3ForCausalLM(hf.Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=4096, intermediate_size=12288, num_hidden_layers=4, num_attention_heads=32,
        num_key_value_heads=8, head_dim=128, max_position_embeddings=8192, tie_word_embeddings=False)), use_cache=False)


def gemma() -> nn.Module:
    """The widths of Gemma-7B."""
    return FirstOutput(hf.GemmaForCausalLM(hf.GemmaConfig(
        vocab_size=VOCABULARY, hidden_size=3072, intermediate_size=24576, num_hidden_layers=4, num_attention_heads=16,
        num_key_value_heads=16, head_dim=256, max_position_embeddings=8192)), use_cache=False)


def gemma_small() -> nn.Module:
    """The widths of Gemma 3 1B, in the layers of Gemma."""
    return FirstOutput(hf.GemmaForCausalLM(hf.GemmaConfig(
        vocab_size=VOCABULARY, hidden_size=1152, intermediate_size=6912, num_hidden_layers=6, num_attention_heads=4,
        num_key_value_heads=1, head_dim=256)), use_cache=False)


def bert() -> nn.Module:
    return FirstOutput(hf.BertModel(hf.BertConfig(vocab_size=VOCABULARY, hidden_size=768, num_hidden_layers=12)))


class WhisperEncoder(nn.Module):
    """The widths of whisper-base: 30 seconds of speech, as 3,000 frames of 80 numbers."""

    def __init__(self):
        super().__init__()
        self.model = hf.WhisperModel(hf.WhisperConfig(
            d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048, decoder_layers=1,
            decoder_attention_heads=8)).encoder

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        return self.model(frames, return_dict=False)[0]


KINDS = {"llama": llama, "wide": wide, "large": large, "qwen2": qwen2, "qwen2_small": qwen2_small,
         "qwen3": qwen3, "gemma": gemma, "gemma_small": gemma_small, "bert": bert, "whisper": WhisperEncoder}
SHAPES = {"whisper": (80, 3000), **dict.fromkeys(vision_models.KINDS, (3, 224, 224)), "yolo": (3, 448, 448)}


def build(name: str, dtype: str, device: str = "cpu") -> nn.Module:
    hf.logging.set_verbosity_error()
    torch.manual_seed(1)
    kind, _, attention = name.partition("-")
    if kind in vision_models.KINDS:
        return vision_models.build(kind, random(kind, 2)).to(device, getattr(torch, dtype))
    with torch.device(device):
        model = KINDS[kind]()
    if attention == "causal":  # a name without a function that makes masks
        hf.AttentionInterface.register("causal", hf.AttentionInterface._global_mapping["sdpa"])
    if attention or kind != "whisper":
        model.model.set_attn_implementation(attention or "sdpa")
    return model.to(getattr(torch, dtype)).eval()


def tokens(count: int, device: str = "cpu") -> torch.Tensor:
    """Those of model_runner.cpp."""
    return (torch.arange(count) * 7919 % (VOCABULARY - 1) + 1).unsqueeze(0).to(device)


def random(kind: str, count: int) -> torch.Tensor:
    """Those of model_runner.cpp."""
    return torch.randn(count, *SHAPES[kind], generator=torch.Generator().manual_seed(1), dtype=torch.float32)


def reads_tokens(name: str) -> bool:
    return name.partition("-")[0] not in SHAPES


def inputs(name: str, size: int, dtype: str = "float32", device: str = "cpu") -> torch.Tensor:
    if reads_tokens(name):
        return tokens(size, device)
    return random(name, size).to(device, getattr(torch, dtype))


def example(name: str, dtype: str = "float32", device: str = "cpu") -> torch.Tensor:
    """What it is traced with."""
    return inputs(name, 8 if reads_tokens(name) else 1, dtype, device)


def changing_dimension(name: str) -> int:
    return 1 if reads_tokens(name) else 0


@torch.no_grad()
def make(name: str, dtype: str, path: str, device: str = "cpu") -> None:
    torch.jit.trace(build(name, dtype, device), example(name, dtype, device), check_trace=False).save(path)


class Exact(nn.Module):
    """Answers inputs of some sizes with what a model says in double precision."""

    def __init__(self, dimension: int, results: dict[int, torch.Tensor]):
        super().__init__()
        self.dimension, self.results = dimension, results

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.results[x.size(self.dimension)]


@torch.no_grad()
def exact(name: str, dtype: str, path: str, *sizes: str) -> None:
    """Norms of transformers compute in float32 by themselves, also here."""
    model = build(name, dtype).double()
    torch.set_default_dtype(torch.double)  # of masks and tables that the model makes
    results = {}
    for size in map(int, sizes):
        given = inputs(name, size, dtype)
        results[size] = model(given.double() if given.is_floating_point() else given)
    torch.jit.script(Exact(changing_dimension(name), results)).save(path)


# Scripted: a decoder layer whose instances share their code.
class Norm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.to(torch.float32)
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * h.to(x.dtype)


class Layer(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.first, self.second = Norm(width), Norm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (nn.Linear(width, width, bias=False) for _ in range(3))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def rotate(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        half = x.size(-1) // 2
        return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        h = self.first(x)
        q, k, v = self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h))
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        scores = torch.matmul(q, k.transpose(2, 3)) * 0.25
        mixed = torch.matmul(torch.softmax(scores, dim=-1), v).transpose(1, 2)
        x = x + self.o(mixed.reshape(x.size(0), x.size(1), -1))
        h = self.second(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Decoder(nn.Module):
    def __init__(self, layers: int):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.layers = nn.ModuleList([Layer(32, 4) for _ in range(layers)])

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        angle = torch.arange(x.size(1), device=x.device).float()[:, None] * torch.ones(1, 8)
        for layer in self.layers:
            x = layer(x, angle.cos(), angle.sin())
        return x


def narrow(name: str, layers: int) -> nn.Module:
    hf.logging.set_verbosity_error()
    torch.manual_seed(1)
    kind, _, attention = name.partition("-")
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": layers,
             "num_attention_heads": 4}
    if kind == "llama":
        model = FirstOutput(hf.LlamaForCausalLM(hf.LlamaConfig(**sizes, num_key_value_heads=2)), use_cache=False)
    else:
        model = FirstOutput(hf.BertModel(hf.BertConfig(**sizes)))
    model.model.set_attn_implementation(attention or "sdpa")
    return model.eval()


@torch.no_grad()
def small(name: str, layers: str, folder: str) -> None:
    if name == "scripted":
        models = {"scripted": torch.jit.script(Decoder(int(layers)).eval())}
    else:
        models = {"traced": torch.jit.trace(narrow(name, int(layers)), tokens(8), check_trace=False)}
        models["frozen"] = torch.jit.freeze(models["traced"])
    for form, model in models.items():
        model.save(f"{folder}/{name},{layers},{form}.pt")


if __name__ == "__main__":
    {"make": make, "exact": exact, "small": small}[sys.argv[1]](*sys.argv[2:])
