"""The models of model_bench.py, and torch.compile as one of its contestants. Needs torch and transformers.

    models.py make MODEL DTYPE FILE       traced and saved
    models.py run MODEL DTYPE             answers what model_bench.py asks, as model_runner does

MODEL-eager: with attention written out, as transformers does by attn_implementation="eager".
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


def bert() -> nn.Module:
    return FirstOutput(hf.BertModel(hf.BertConfig(vocab_size=VOCABULARY, hidden_size=768, num_hidden_layers=12)))


def build(name: str, dtype: str) -> nn.Module:
    hf.logging.set_verbosity_error()
    torch.manual_seed(1)
    kind, _, attention = name.partition("-")
    model = {"llama": llama, "bert": bert}[kind]()
    model.model.set_attn_implementation(attention or "sdpa")
    return model.to(getattr(torch, dtype)).eval()


def tokens(count: int) -> torch.Tensor:
    """Those of model_runner.cpp."""
    return (torch.arange(count) * 7919 % (VOCABULARY - 1) + 1).unsqueeze(0)


@torch.no_grad()
def make(name: str, dtype: str, path: str) -> None:
    torch.jit.trace(build(name, dtype), tokens(8), check_trace=False).save(path)


@torch.inference_mode()
def run(name: str, dtype: str) -> None:
    model = build(name, dtype)
    compiled = torch.compile(model, dynamic=False)
    for line in sys.stdin:
        what, _, count, calls = line.split()
        inputs = tokens(int(count))
        if what == "time":
            start = time.perf_counter()
            for _ in range(int(calls)):
                compiled(inputs)
            answer = (time.perf_counter() - start) / int(calls)
        else:
            expected = model(inputs).double()
            answer = ((compiled(inputs).double() - expected).norm() / expected.norm()).item()
        print(answer, flush=True)


if __name__ == "__main__":
    {"make": make, "run": run}[sys.argv[1]](*sys.argv[2:])
