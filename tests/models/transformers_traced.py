"""Traced models of transformers, as people save them: tiny, with weights so large that every layer matters.

Each is NAME.pt, NAME_float16.pt and NAME_bfloat16.pt, and beside each a file NAME….io.pt: the inputs it was traced
with, inputs of another batch and length, and for both what a run in double precision gives. NAME_eager….pt: with
attention written out.
"""

import copy
import math
import pathlib
from collections.abc import Callable

import torch
import transformers as hf
from tiny_llama.traceable import LogitsOnly, random_tokens
from torch import nn
from torch.overrides import TorchFunctionMode

DTYPES = {"": torch.float32, "_float16": torch.float16, "_bfloat16": torch.bfloat16}
VOCABULARY = 96
DECODER = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-3, "pad_token_id": 0,
    "tie_word_embeddings": False,
}
ENCODER = {"hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 2, "num_attention_heads": 4,
           "layer_norm_eps": 1e-3}


class FirstOutput(nn.Module):
    """Tensors in, the first output out: the dictionaries of transformers cannot be traced."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, return_dict=False)[0]


class EncoderDecoder(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, decoder_input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False,
                          return_dict=False)[0]


class InDouble(TorchFunctionMode):
    """Computes in double where the source says a lower precision."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def widened(value):
            return torch.float64 if value in DTYPES.values() and isinstance(value, torch.dtype) else value

        if function is torch.Tensor.float:
            function = torch.Tensor.double
        return function(*map(widened, args), **{key: widened(value) for key, value in (kwargs or {}).items()})


def t5_config() -> hf.T5Config:
    return hf.T5Config(vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=160, num_layers=2, num_heads=4,
                       layer_norm_epsilon=1e-3, feed_forward_proj="relu", pad_token_id=0)


def whisper_encoder() -> nn.Module:
    config = hf.WhisperConfig(d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=160,
                              num_mel_bins=8, max_source_positions=12, decoder_layers=1, decoder_attention_heads=4,
                              decoder_ffn_dim=64, vocab_size=VOCABULARY, pad_token_id=0, bos_token_id=1,
                              eos_token_id=2, decoder_start_token_id=1)
    return hf.WhisperModel(config).encoder


# What is traced, and the kind of its inputs.
FAMILIES: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "qwen2": (lambda: LogitsOnly(hf.Qwen2ForCausalLM(hf.Qwen2Config(**DECODER))), "tokens"),
    "qwen3": (lambda: LogitsOnly(hf.Qwen3ForCausalLM(hf.Qwen3Config(**DECODER, head_dim=16))), "tokens"),
    "llama": (lambda: LogitsOnly(hf.LlamaForCausalLM(hf.LlamaConfig(**{**DECODER, "tie_word_embeddings": True}))),
              "tokens"),
    "mistral": (lambda: LogitsOnly(hf.MistralForCausalLM(hf.MistralConfig(**DECODER, sliding_window=None))), "tokens"),
    "gemma": (lambda: LogitsOnly(hf.GemmaForCausalLM(hf.GemmaConfig(**DECODER, head_dim=16))), "tokens"),
    "phi3": (lambda: LogitsOnly(hf.Phi3ForCausalLM(hf.Phi3Config(**DECODER))), "tokens"),
    "gpt2": (lambda: LogitsOnly(hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=64, n_layer=2, n_head=4, layer_norm_epsilon=1e-3))), "tokens"),
    "bert": (lambda: FirstOutput(hf.BertModel(hf.BertConfig(
        **ENCODER, vocab_size=VOCABULARY, max_position_embeddings=64))), "tokens"),
    "vit": (lambda: FirstOutput(hf.ViTModel(hf.ViTConfig(**ENCODER, image_size=16, patch_size=4))), "image"),
    "t5": (lambda: EncoderDecoder(hf.T5ForConditionalGeneration(t5_config())), "two texts"),
    "whisper": (lambda: FirstOutput(whisper_encoder()), "sound"),
}

# These with attention written out, too; of Gemma 2 there is no other form.
EAGER = ["qwen2", "qwen3", "llama", "mistral", "gemma", "phi3", "gpt2", "bert", "vit", "t5", "whisper"]
EAGER_ONLY: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "gemma2": (lambda: LogitsOnly(hf.Gemma2ForCausalLM(hf.Gemma2Config(**DECODER, head_dim=16))), "tokens"),
    "gptneox": (lambda: LogitsOnly(hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=160,
        layer_norm_eps=1e-3, rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}))),
                "tokens"),
    "cohere": (lambda: LogitsOnly(hf.CohereForCausalLM(hf.CohereConfig(
        **{key: value for key, value in DECODER.items() if key != "rms_norm_eps"}, layer_norm_eps=1e-3))), "tokens"),
}


def inputs_of(kind: str, batch: int, length: int, seed: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    if kind == "image":
        return (torch.randn(batch, 3, 16, 16, generator=generator),)
    if kind == "sound":
        return (torch.randn(batch, 8, 24, generator=generator),)
    tokens = random_tokens(batch, length, VOCABULARY - 1, seed) + 1  # 0 is the padding
    if kind == "two texts":
        return tokens, random_tokens(batch, length - 3, VOCABULARY - 1, seed + 1) + 1
    return (tokens,)


@torch.no_grad()
def give_strong_weights(model: nn.Module, seed: int) -> None:
    """Default initial weights are so small that a broken layer hardly moves the result."""
    generator = torch.Generator().manual_seed(seed)
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        if not isinstance(weight, torch.Tensor):
            continue
        kind = type(module).__name__
        if isinstance(module, nn.Embedding):
            weight.normal_(0.0, 0.6, generator=generator)
        elif kind == "GemmaRMSNorm":  # zero-centred
            weight.uniform_(-0.5, 0.5, generator=generator)
        elif kind.endswith("Norm"):
            weight.uniform_(0.5, 1.5, generator=generator)
        elif kind == "Conv1D":  # of transformers: a Linear with its weight transposed
            weight.normal_(0.0, 1.2 / math.sqrt(weight.shape[0]), generator=generator)
        else:
            gain = 3.0 if name.endswith("lm_head") else 1.2
            weight.normal_(0.0, gain / math.sqrt(weight[0].numel()), generator=generator)
        if getattr(module, "bias", None) is not None:
            module.bias.normal_(0.0, 0.2, generator=generator)
    for name, parameter in model.named_parameters():
        if name.endswith(("cls_token", "position_embeddings")):
            parameter.normal_(0.0, 0.5, generator=generator)


def in_dtype(inputs: tuple[torch.Tensor, ...], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return tuple(one.to(dtype) if one.is_floating_point() else one for one in inputs)


@torch.no_grad()
def make_one(name: str, suffix: str, folder: pathlib.Path) -> None:
    build, kind = {**FAMILIES, **EAGER_ONLY}[name]
    torch.manual_seed(5)
    model = build().eval()
    if suffix.startswith("_eager"):
        model.model.set_attn_implementation("eager")
    give_strong_weights(model, seed=31)
    dtype = DTYPES.get(suffix.removeprefix("_eager"), torch.float16)
    model = model.to(dtype)
    if suffix == "_mixed":
        for part_name, part in model.named_modules():
            if part_name.endswith(".wo"):
                part.float()
    runs = [in_dtype(inputs_of(kind, *shape, seed), dtype) for shape, seed in (((2, 12), 3), ((3, 7), 4))]
    traced = torch.jit.trace(model, runs[0], check_trace=False)
    path = folder / f"{name}{suffix}.pt"
    traced.save(str(path))
    saved = torch.jit.load(str(path))
    reference = copy.deepcopy(model).double()
    expected = []
    for inputs in runs:
        own = model(*inputs)
        if not torch.allclose(saved(*inputs), own, rtol=0, atol=own.abs().max().item() * torch.finfo(dtype).eps * 8):
            raise SystemExit(f"{path.name}: differs from the eager model")
        with InDouble():
            expected.append(reference(*in_dtype(inputs, torch.float64)))
        assert expected[-1].dtype == torch.float64
    torch.save({"inputs": runs, "expected": expected}, path.with_suffix(".io.pt"))


def make(folder: pathlib.Path) -> None:
    hf.logging.set_verbosity_error()  # it warns of token numbers that these small vocabularies lack
    for name in FAMILIES:
        for suffix in DTYPES:
            make_one(name, suffix, folder)
    make_one("t5", "_mixed", folder)  # as from_pretrained makes it: one projection and the residuals in float32
    for name in (*EAGER, *EAGER_ONLY):
        for suffix in ("_eager", "_eager_bfloat16"):
            make_one(name, suffix, folder)
