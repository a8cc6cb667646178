"""The models of model_bench.py, and torch.compile as one of its contestants. Needs torch and transformers.

    models.py make MODEL DTYPE FILE [DEVICE]          traced and saved
    models.py run MODEL DTYPE [DEVICE [MODE]]         answers what model_bench.py asks, as model_runner does
    models.py openvino FILE PRECISION                 the same for OpenVINO, which reads the traced FILE (f32, bf16)
    models.py small MODEL LAYERS FOLDER               narrow ones for pattern_bench.py: MODEL,LAYERS,FORM.pt

MODEL-eager: with attention written out, as transformers does by attn_implementation="eager"; MODEL-causal: with the
operator, told that it is causal instead of given a mask (the trace of transformers' own makes one). MODE is that of
torch.compile.
"""

import os
import sys
import time
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers as hf  # noqa: E402
from torch import nn  # noqa: E402

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


def bert() -> nn.Module:
    return FirstOutput(hf.BertModel(hf.BertConfig(vocab_size=VOCABULARY, hidden_size=768, num_hidden_layers=12)))


def build(name: str, dtype: str, device: str = "cpu") -> nn.Module:
    hf.logging.set_verbosity_error()
    torch.manual_seed(1)
    kind, _, attention = name.partition("-")
    kinds = {"llama": llama, "large": large, "qwen2": qwen2, "qwen3": qwen3, "gemma": gemma, "bert": bert}
    with torch.device(device):
        model = kinds[kind]()
    if attention == "causal":  # a name without a function that makes masks
        hf.AttentionInterface.register("causal", hf.AttentionInterface._global_mapping["sdpa"])
    model.model.set_attn_implementation(attention or "sdpa")
    return model.to(getattr(torch, dtype)).eval()


def tokens(count: int, device: str = "cpu") -> torch.Tensor:
    """Those of model_runner.cpp."""
    return (torch.arange(count) * 7919 % (VOCABULARY - 1) + 1).unsqueeze(0).to(device)


@torch.no_grad()
def make(name: str, dtype: str, path: str, device: str = "cpu") -> None:
    torch.jit.trace(build(name, dtype, device), tokens(8, device), check_trace=False).save(path)


def seconds_per_call(call, calls: int, wait: bool, on_gpu: bool) -> float:
    """As model_runner does: back to back (on a GPU by its own clock), or waiting for each."""
    if on_gpu and not wait:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3 / calls
    clock = time.process_time if "TWINKLE_BENCH_CLOCK" in os.environ else time.perf_counter  # as model_runner.cpp
    start = clock()
    for _ in range(calls):
        call()
        if on_gpu:
            torch.cuda.synchronize()
    return (clock() - start) / calls


@torch.inference_mode()
def run(name: str, dtype: str, device: str = "cpu", mode: str = "default") -> None:
    model = build(name, dtype, device)
    answer_questions(model, torch.compile(model, dynamic=False, mode=mode), device)


@torch.inference_mode()
def run_openvino(path: str, precision: str) -> None:
    import openvino

    model = torch.jit.load(path)
    hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": torch.get_num_threads(),
             "PERFORMANCE_HINT": "LATENCY"}
    converted = openvino.convert_model(torch.jit.load(path), example_input=tokens(8))
    request = openvino.Core().compile_model(converted, "CPU", hints).create_infer_request()
    answer_questions(model, lambda inputs: torch.from_numpy(request.infer([inputs.numpy()])[0]))


def answer_questions(model, contestant, device: str = "cpu") -> None:
    for line in sys.stdin:
        what, _, count, calls = line.split()
        inputs = tokens(int(count), device)
        if what == "differ":
            expected = model(inputs).double()
            answer = ((contestant(inputs).double() - expected).norm() / expected.norm()).item()
        else:
            answer = seconds_per_call(lambda: contestant(inputs), int(calls), what == "wait", device != "cpu")
        print(answer, flush=True)


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
    {"make": make, "run": run, "openvino": run_openvino, "small": small}[sys.argv[1]](*sys.argv[2:])
